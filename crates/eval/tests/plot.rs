//! Figures of recordings, and charts.

use alphamf::denoiser::{SpeechLevel, SpeechLevels};
use alphamf_eval::plot::{
    Bar, Caption, Curve, Figure, FrequencyScale, Point, RecordingPlot, bars, curves, histogram, scatter,
};
use std::fs;
use std::path::Path;

/// The figure of a 1 kHz tone at -20 dBFS with noise at -60 dBFS; the output is the tone alone.
fn plot(sample_rate: u32, seconds: f64, scale: FrequencyScale) -> Figure {
    let rate = f64::from(sample_rate);
    let mut state = 1_u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (f64::from(state) / f64::from(u32::MAX) - 0.5) * 0.002 * 12_f64.sqrt() / 2.0
    };
    let tone = |n: usize| {
        let time = n as f64 / rate;
        let on = if (time % 1.0) < 0.7 { 0.1 } else { 0.0 };
        on * (std::f64::consts::TAU * 1_000.0 * time).sin()
    };
    let length = (seconds * rate) as usize;
    let clean: Vec<f32> = (0..length).map(|n| tone(n) as f32).collect();
    let noisy: Vec<f32> = clean.iter().map(|x| x + noise() as f32).collect();
    let mut plot = RecordingPlot::new(sample_rate, 1, 0.064, scale).unwrap();
    // The denoised signal lags by one block.
    let mut late: &[f32] = &[];
    for (before, after) in noisy.chunks(8_192).zip(clean.chunks(8_192)) {
        plot.push(&[before.to_vec()], &[late.to_vec()]);
        late = after;
    }
    plot.push(&[vec![]], &[late.to_vec()]);
    let cell =
        |level: f64| SpeechLevel { level_dbfs: level, lower_dbfs: level - 4.0, upper_dbfs: level + 3.0 };
    let slots = (seconds * 10.0) as usize;
    plot.push_levels(&[SpeechLevels {
        edges_hertz: vec![0.0, 500.0, rate / 2.0],
        slot_seconds: 0.1,
        first_slot: 0,
        cells: (0..slots)
            .flat_map(
                |slot| if slot % 10 < 7 { [Some(cell(-26.0)), Some(cell(-26.0))] } else { [None, None] },
            )
            .collect(),
    }]);
    plot.finish(Caption {
        name: "tone & noise <1>.wav".to_owned(),
        sample_rate,
        channels: 1,
        seconds,
        snr_before_db: Some(-3.25),
        snr_after_db: Some(40.0),
    })
}

fn decode(png: &[u8]) -> (usize, usize, Vec<u8>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let frame = reader.next_frame(&mut pixels).unwrap();
    (frame.width as usize, frame.height as usize, pixels)
}

#[test]
fn figures_say_what_they_show_and_in_which_unit() {
    let figure = plot(16_000, 2.0, FrequencyScale::Linear);
    assert_eq!(figure.summary(), "0:02.0, 16 kHz, mono; estimated SNR \u{2212}3.2 dB before, 40.0 dB after");
    for (seconds, length) in
        [(0.05, "0:00.05"), (0.999, "0:01.00"), (599.0, "9:59.0"), (600.0, "10:00"), (3_600.0, "1:00:00")]
    {
        let caption = Caption { seconds, ..figure.caption.clone() };
        let summary = Figure { caption, ..figure.clone() }.summary();
        assert!(summary.starts_with(&format!("{length}, 16 kHz")), "{summary}");
    }
    let svg = figure.svg().unwrap();
    for part in ["<title>tone &amp; noise &lt;1&gt;.wav</title>", "<desc>0:02.0, 16 kHz", "@font-face"] {
        assert!(svg.contains(part), "{part}");
    }
    let text = |words: &str| svg.lines().any(|line| line.trim() == words);
    for words in
        ["Before", "After", "Removed", "kHz", "dBFS", "dB", "time in m:ss", "0:00.2", "8", "\u{2212}20"]
    {
        assert!(text(words), "{words}");
    }
    assert!(!svg.contains("standard deviation"), "nothing was drawn from the posterior");
    // Three spectrograms and their scale, which extends from the tone's level to 80 dB below it.
    assert_eq!(svg.matches("<image").count(), 4);
    assert!(text("\u{2212}100") && !text("\u{2212}110") && !text("0 dBFS"));
}

#[test]
fn bitmaps_show_the_tone_where_it_is() {
    let figure = plot(8_000, 3.0, FrequencyScale::Linear);
    let (width, height, pixels) = decode(&figure.png().unwrap());
    assert_eq!(width, 2_400);
    let pixel = |x: usize, y: usize| &pixels[3 * (y * width + x)..][..3];
    // The spectrogram "Before": 300 pixels high below head, title, waveform and gap; 1 kHz is a quarter of the way up.
    let top = 2 * (74 + 26 + 64 + 8);
    let at = |seconds: f64, hertz: f64| {
        let x = 168 + (seconds / 3.0 * 2_020.0) as usize;
        pixel(x, top + 299 - (hertz / 4_000.0 * 300.0) as usize)
    };
    let brightness = |pixel: &[u8]| pixel.iter().map(|&x| u32::from(x)).sum::<u32>();
    assert!(brightness(at(0.35, 1_003.0)) > 420, "{:?}", at(0.35, 1_003.0));
    assert!(brightness(at(0.85, 1_003.0)) < 250 && brightness(at(0.35, 3_000.0)) < 250);
    // The outermost pixels stay white.
    let white = |x: usize, y: usize| pixel(x, y) == [255, 255, 255];
    assert!((0..height).all(|y| white(0, y) && white(width - 1, y)));
    assert!((0..width).all(|x| white(x, 0) && white(x, height - 1)));
}

#[test]
fn few_channels_or_samples_are_drawn_too() {
    for seconds in [0.0, 0.01, 0.1] {
        let figure = plot(8_000, seconds, FrequencyScale::Log);
        assert!(figure.png().unwrap().starts_with(b"\x89PNG") && figure.svg().unwrap().ends_with("</svg>\n"));
    }
}

/// The figure of a mono recording that denoising leaves unchanged.
fn unchanged(sample_rate: u32, samples: &[f32]) -> Figure {
    let mut plot = RecordingPlot::new(sample_rate, 1, 0.064, FrequencyScale::Linear).unwrap();
    plot.push(&[samples.to_vec()], &[samples.to_vec()]);
    let seconds = samples.len() as f64 / f64::from(sample_rate);
    plot.finish(Caption { name: "a.wav".to_owned(), sample_rate, channels: 1, seconds, ..Caption::default() })
}

/// Colour of the spectrogram "Before" half a second after the start, at a fraction of its height.
fn colour_at(figure: &Figure, height: f64) -> [u8; 3] {
    let (width, _, pixels) = decode(&figure.png().unwrap());
    let x = 168 + (0.5 / figure.caption.seconds * 2_020.0) as usize;
    let y = 2 * (74 + 26 + 64 + 8) + 299 - (300.0 * height) as usize;
    std::array::from_fn(|n| pixels[3 * (y * width + x) + n])
}

#[test]
fn silence_is_black() {
    for level in [0.0, 1e-12, 1e-9] {
        let samples: Vec<f32> =
            (0..8_000).map(|n| level * (n as f32 * std::f32::consts::FRAC_PI_4).sin()).collect();
        assert_eq!(colour_at(&unchanged(8_000, &samples), 0.75), [0, 0, 4], "{level}");
    }
}

/// Squares of samples at the last two levels exceed the range of `f32`; at the last level, the transform does too.
#[test]
fn levels_far_above_full_scale_are_drawn() {
    for level in [1e16, 1e25, 3e38_f32] {
        let samples: Vec<f32> =
            (0..8_000).map(|n| level * (n as f32 * std::f32::consts::FRAC_PI_4).sin()).collect();
        let figure = unchanged(8_000, &samples);
        assert!(!figure.svg().unwrap().lines().any(|line| ["inf", "NaN"].contains(&line.trim())), "{level}");
        assert!(colour_at(&figure, 0.25).iter().map(|&x| u32::from(x)).sum::<u32>() > 500, "{level}");
    }
}

/// The second frame has its centre at the start of the recording, and the first one before it.
#[test]
fn deviations_are_drawn_at_the_time_of_their_spectrum() {
    let mut plot = RecordingPlot::new(8_000, 1, 0.064, FrequencyScale::Linear).unwrap();
    let samples = vec![0.0; 800];
    plot.push(std::slice::from_ref(&samples), std::slice::from_ref(&samples));
    let (bins, frames) = (257, 10);
    let of_frame = |frame: usize| vec![if frame == 1 { 0.2 } else { 0.0 }; bins];
    (0..frames).for_each(|frame| plot.push_deviations(&[of_frame(frame)]));
    let seconds = 0.1;
    let figure = plot.finish(Caption {
        name: "a.wav".to_owned(),
        sample_rate: 8_000,
        channels: 1,
        seconds,
        ..Caption::default()
    });
    assert_eq!(figure.deviation.frames(), figure.stages[0].columns.frames());
    let (width, _, pixels) = decode(&figure.png().unwrap());
    let middle_of_panel = 2 * (74 + 3 * (26 + 64 + 8 + 150) + 26 + 75);
    let brightness = |seconds: f64| {
        let pixel = 3 * (middle_of_panel * width + 170 + (seconds / 0.1 * 2_020.0) as usize);
        pixels[pixel..pixel + 3].iter().map(|&x| u32::from(x)).sum::<u32>()
    };
    assert!(brightness(0.0) > 600 && brightness(0.016) < 100, "{} {}", brightness(0.0), brightness(0.016));
}

/// Counts lines in the colour of the SNR. A section shorter than a slot, or of one slot between silence in hours, has a
/// single point, but is still drawn as a line.
#[test]
fn the_snr_of_short_sections_is_drawn() {
    for seconds in [0.01, 0.05, 0.15, 2.0] {
        let svg = plot(8_000, seconds, FrequencyScale::Linear).svg().unwrap();
        let lines = svg.lines().filter(|line| line.starts_with("<polyline") && line.contains("#C2570C"));
        let points: Vec<_> = lines.map(|line| line.matches(',').count()).collect();
        assert!(points.len() == 1 && points[0] >= 2, "{seconds}: {points:?}");
    }
}

/// The faint output in the silence would otherwise have an SNR of 0 dB.
#[test]
fn digital_silence_has_no_snr() {
    let noise = (0..16_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 16) as f32 / 65_536.0 - 0.5);
    let (noisy, after): (Vec<f32>, Vec<f32>) =
        noise.map(|x| (x, 0.25 * x)).chain(vec![(0.0, 1e-6); 16_000]).unzip();
    let mut plot = RecordingPlot::new(8_000, 1, 0.064, FrequencyScale::Linear).unwrap();
    plot.push(&[noisy], &[after]);
    let svg = plot.finish(Caption { sample_rate: 8_000, channels: 1, seconds: 4.0, ..Caption::default() });
    let svg = svg.svg().unwrap();
    let line = svg.lines().find(|line| line.starts_with("<polyline") && line.contains("#C2570C")).unwrap();
    let points = line.split_once("points=\"").unwrap().1.split_once('"').unwrap().0;
    let heights: Vec<&str> =
        points.split_whitespace().map(|point| point.split_once(',').unwrap().1).collect();
    assert!(heights.len() > 20 && heights.iter().all(|height| height == &heights[0]), "{heights:?}");
}

/// Lines of the SNR in the figure of noise that denoising scales by 0.25; the output holds a fraction `mix` of the
/// denoised signal, and the input.
fn snr_with_mix(mix: f32) -> Vec<String> {
    let noisy: Vec<f32> =
        (0..16_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 16) as f32 / 65_536.0 - 0.5).collect();
    let mixed = noisy.iter().map(|x| mix * 0.25 * x + (1.0 - mix) * x).collect();
    let mut plot = RecordingPlot::new(8_000, 1, 0.064, FrequencyScale::Linear).unwrap();
    plot.set_mix(mix);
    plot.push(&[noisy], &[mixed]);
    let caption = Caption {
        name: "a.wav".to_owned(),
        sample_rate: 8_000,
        channels: 1,
        seconds: 2.0,
        ..Caption::default()
    };
    let svg = plot.finish(caption).svg().unwrap();
    svg.lines()
        .filter(|line| line.starts_with("<polyline") && line.contains("#C2570C"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_snr_does_not_depend_on_the_mix() {
    let expected = snr_with_mix(1.0);
    assert_eq!(expected.len(), 1);
    for mix in [0.8, 0.2] {
        assert_eq!(snr_with_mix(mix), expected, "{mix}");
    }
    assert!(snr_with_mix(0.0).is_empty(), "nothing is known of it");
}

/// An SVG keeps such names, as browsers have other fonts; a bitmap shows a question mark for each missing glyph.
#[test]
fn names_in_other_scripts_are_no_blanks() {
    let named = |name: &str| {
        let figure = unchanged(8_000, &[0.0; 800]);
        Figure { caption: Caption { name: name.to_owned(), ..figure.caption.clone() }, ..figure }
    };
    let name = "\u{65e5}\u{672c}.wav";
    assert!(named(name).svg().unwrap().lines().any(|line| line.trim() == name));
    let [png, expected] = [name, "??.wav"].map(|name| named(name).png().unwrap());
    assert!(png == expected);
}

/// Draws example figures for visual inspection.
#[test]
#[ignore = "for the eye: draws examples into target/screenshots"]
fn pictures_to_look_at() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/screenshots");
    fs::create_dir_all(&folder).unwrap();
    for (rate, seconds, scale) in [
        (8_000, 2.0, FrequencyScale::Linear),
        (16_000, 60.0, FrequencyScale::Mel),
        (48_000, 10.0, FrequencyScale::Log),
    ] {
        let figure = plot(rate, seconds, scale);
        fs::write(folder.join(format!("plot-{rate}.png")), figure.png().unwrap()).unwrap();
        fs::write(folder.join(format!("plot-{rate}.svg")), figure.svg().unwrap()).unwrap();
    }
}

#[test]
fn charts_hold_their_titles_units_and_names() {
    let curve = Curve {
        name: "PSGLD <1>".to_owned(),
        points: vec![(0.0, 1.0, 0.1), (1.0, f64::NAN, 0.0), (2.0, 3.0, 0.1)],
    };
    let point = Point { name: "a & b".to_owned(), x: 1.0, y: 4.0 };
    let bar = Bar { label: "babble".to_owned(), value: -1.5, error: 0.2 };
    for (chart, parts) in [
        (
            curves("Convergence", ["s", "SDR in dB"], &[curve]).unwrap(),
            vec!["Convergence", "SDR in dB", "PSGLD &lt;1&gt;"],
        ),
        (scatter("Gain", ["in", "out"], &[point]).unwrap(), vec!["a &amp; b: 1.000 to 4.000", "<circle"]),
        (bars("By noise", "dB", &[bar]).unwrap(), vec!["babble", "\u{2212}1.50"]),
        (histogram("Gains", ["dB", "files"], &[1.0, 2.0, 2.5]).unwrap(), vec!["Gains", "files"]),
    ] {
        assert!(chart.starts_with("<svg ") && !chart.contains("NaN"));
        for part in parts {
            assert!(chart.contains(part), "{part}: {chart}");
        }
    }
}

#[test]
fn charts_leave_out_what_is_not_finite() {
    let unlike = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let bar = |value, error| Bar { label: "babble".to_owned(), value, error };
    let point = |x, y| Point { name: "a".to_owned(), x, y };
    for bad in unlike {
        let lists = [vec![bar(-1.5, 0.2)], vec![bar(bad, 0.1), bar(-1.5, 0.2), bar(1.0, bad)]];
        let [good, mixed] = lists.map(|list| bars("By noise", "dB", &list).unwrap());
        assert_eq!(good, mixed);
        let lists = [vec![point(1.0, 4.0)], vec![point(1.0, bad), point(1.0, 4.0), point(bad, 1.0)]];
        let [good, mixed] = lists.map(|list| scatter("Gain", ["in", "out"], &list).unwrap());
        assert_eq!(good, mixed);
        let lists = [vec![1.0, 2.0], vec![1.0, bad, 2.0]];
        let [good, mixed] = lists.map(|list| histogram("Gains", ["dB", "files"], &list).unwrap());
        assert_eq!(good, mixed);
    }
}
