//! Tests of the record of results.

use super::*;
use std::time::{Duration, UNIX_EPOCH};

#[test]
fn the_newest_lines_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    fs::write(&path, "one\ntwo\nthree\n").unwrap();
    let mut text = Vec::new();
    read_range(File::open(&path).unwrap(), 5..14, &mut text).unwrap();
    assert_eq!(text, b"wo\nthree\n");
}

/// A run that is killed after recording a result and before naming it leaves the previous result.
#[test]
fn results_before_an_interrupted_one_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let [input, output, next] = ["in", "out", "next"].map(|name| folder.path().join(name));
    fs::write(&input, "input").unwrap();
    fs::write(&output, "result").unwrap();
    fs::write(&next, "another result").unwrap();
    let (name, record) = (Path::new("out"), || Record::open(folder.path()).unwrap());
    assert_eq!(record().state(name, &output, &input, "1"), State::Foreign);
    record().add(name, &output, &Snapshot::of(&input), "1", &[]).unwrap();
    assert_eq!(record().state(name, &output, &input, "1"), State::Current);
    record().add(name, &next, &Snapshot::of(&input), "2", &[]).unwrap();
    assert_eq!(record().state(name, &output, &input, "2"), State::Outdated);
    fs::rename(&next, &output).unwrap();
    assert_eq!(record().state(name, &output, &input, "2"), State::Current);
    fs::write(&output, "edited").unwrap();
    assert_eq!(record().state(name, &output, &input, "2"), State::Changed);
}

/// At the second check, only modification times are read.
#[test]
fn what_was_only_touched_is_recorded_with_its_new_time() {
    let folder = tempfile::tempdir().unwrap();
    let [input, output, levels, plot] = ["in", "out", "levels", "plot"].map(|name| folder.path().join(name));
    [&input, &output, &levels, &plot].iter().for_each(|path| fs::write(path, "content").unwrap());
    let reports = [&levels, &plot].map(|path| WantedReport { path, options: String::new() });
    let name = Path::new("out");
    let record = Record::open(folder.path()).unwrap();
    let made = record.add(name, &output, &Snapshot::of(&input), "1", &reports).unwrap().unwrap();
    record.add_reports(made, &reports).unwrap();
    let count = || {
        let record = Record::open(folder.path()).unwrap();
        let states = [record.state(name, &output, &input, "1")]
            .into_iter()
            .chain(reports.iter().map(|report| record.report_state(name, report, &input, "1")));
        assert!(states.into_iter().all(|state| state == State::Current));
        fs::read_to_string(folder.path().join(NAME)).unwrap().lines().count()
    };
    assert_eq!([count(), count()], [2, 2]);
    for (number, touched) in (3..).zip([&input, &output, &levels, &plot]) {
        let file = File::options().write(true).open(touched).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(number)).unwrap();
        assert_eq!([count(), count()], [number, number].map(|number| number as usize), "{touched:?}");
    }
}
