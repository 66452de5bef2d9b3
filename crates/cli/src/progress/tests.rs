use super::{Totals, clock, figures, line, rate, time_left};

#[test]
fn durations_are_clocks() {
    assert_eq!(
        ["0:00", "0:59", "1:00", "59:59", "1:00:00"],
        [0.4, 59.4, 59.6, 3599.0, 3600.0].map(clock)[..]
    );
}

#[test]
fn rates_are_times_real_time_and_absent_before_anything_is_done() {
    assert_eq!(rate(0.0, 1.0), "-");
    assert_eq!(rate(0.0, 0.0), "-");
    assert_eq!(rate(3.0, 2.0), "1.5x");
    assert_eq!(rate(99.6, 10.0), "10x");
}

#[test]
fn the_time_left_is_that_of_the_rest_at_the_same_speed() {
    assert_eq!(time_left(0.0, 3.0), "-:--");
    assert_eq!(time_left(0.25, 10.0), "0:30");
    assert_eq!(time_left(1.0, 10.0), "0:00");
}

#[test]
fn figures_keep_their_columns() {
    let early = figures(0.001, 0.0, 0.2);
    let late = figures(0.9999, 7200.0, 90.0);
    assert_eq!(early, "  0 %     - real time    3:20 left");
    assert_eq!(late, " 99 %   80x real time    0:00 left");
    assert_eq!(early.len(), late.len());
}

#[test]
fn skipped_and_failed_files_do_not_count_as_work() {
    let mut totals = Totals { files: 3, work: 400.0, ..Totals::default() };
    totals.leave_out(300.0, 0.0);
    totals.advance(100.0, 0.5, 8.0);
    assert_eq!((totals.fraction(), totals.audio_seconds), (0.5, 8.0));
    // It fails half-way.
    totals.leave_out(100.0, 0.5);
    assert_eq!((totals.work, totals.done, totals.fraction()), (0.0, 0.0, 1.0));
}

#[test]
fn a_line_has_the_file_and_the_time_left_for_all() {
    let totals = Totals { files: 4, finished: 1, work: 4.0, done: 1.0, audio_seconds: 12.0, bars: 0 };
    assert_eq!(
        line(&totals, "a.wav", 12.0, 3.5, 4.0),
        "1 of 4: a.wav: 12.00 s of audio in 3.50 s; all 3.0x real time, 0:12 left"
    );
}
