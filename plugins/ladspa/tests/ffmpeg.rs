//! The plugin in a host: ffmpeg's filter `ladspa`.

mod hosts;

use alphamf::denoiser::LiveControls;
use hosts::{FORMATS, Format, RATES, Recording, expected, floats, plugin, recording};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

fn has_filter() -> bool {
    let filters = Command::new("ffmpeg").args(["-hide_banner", "-filters"]).output();
    let found = filters.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(" ladspa "));
    if !found {
        std::io::stderr().write_all(b"SKIPPED: no ffmpeg with the filter ladspa\n").unwrap();
    }
    found
}

/// The filter by its label, with further options.
fn ladspa(label: &str, options: &str) -> String {
    format!("ladspa=file={}:plugin={label}{options}", plugin().display())
}

impl Format {
    /// ffmpeg's name of the interleaved layout in memory.
    fn ffmpeg(self) -> &'static str {
        match self {
            Self::S16 => "s16",
            Self::S32 => "s32",
            Self::F32 => "flt",
            Self::F64 => "dbl",
        }
    }
}

/// Chains of filters in one run of ffmpeg, each with its input.
struct Run {
    folder: tempfile::TempDir,
    command: Command,
    graph: Vec<String>,
    outputs: Vec<PathBuf>,
}

impl Run {
    fn new() -> Self {
        let mut command = Command::new("ffmpeg");
        command.args(["-hide_banner", "-nostdin", "-loglevel", "error", "-y"]);
        Self { folder: tempfile::tempdir().unwrap(), command, graph: Vec::new(), outputs: Vec::new() }
    }

    /// Adds a chain; `chain` has no labels at its ends.
    fn add(&mut self, input: &Recording, format: Format, chain: &str) {
        let number = self.outputs.len();
        let path = self.folder.path().join(format!("{number}.in"));
        std::fs::write(&path, &input.bytes).unwrap();
        let name = match format {
            Format::S16 | Format::S32 => format!("{}le", format.ffmpeg()),
            Format::F32 => "f32le".to_owned(),
            Format::F64 => "f64le".to_owned(),
        };
        let (rate, width) = (input.rate.to_string(), input.width.to_string());
        self.command.args(["-f", &name, "-ar", &rate, "-ac", &width, "-i"]).arg(path);
        self.graph.push(format!("[{number}:a]{chain}[o{number}]"));
        self.outputs.push(self.folder.path().join(format!("{number}.out")));
    }

    /// The whole command.
    fn command(&mut self) -> &mut Command {
        self.command.args(["-filter_complex", &self.graph.join(";")]);
        for (number, path) in self.outputs.iter().enumerate() {
            self.command.args(["-map", &format!("[o{number}]"), "-f", "f32le"]).arg(path);
        }
        &mut self.command
    }

    /// Runs it and returns every chain's output.
    fn outputs(mut self) -> Vec<Vec<f32>> {
        let output = self.command().output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.outputs.iter().map(|path| floats(path)).collect()
    }
}

#[test]
fn every_rate_sample_format_and_frame_size_gives_the_librarys_output_bit_for_bit() {
    if !has_filter() {
        return;
    }
    let controls = LiveControls { floor_db: -20.0, mix: 0.75, ..LiveControls::default() };
    let options = ":controls=c1=-20|c2=0.75";
    let sizes = [1, 63, 480, 1_024, 4_096, 100_000];
    let layouts = FORMATS.iter().flat_map(|format| [(*format, ""), (*format, "p")]);
    let layouts: Vec<(Format, &str)> = layouts.collect();
    for (turn, rate) in RATES.into_iter().enumerate() {
        let mut run = Run::new();
        let mut wanted = Vec::new();
        for (number, &(format, planar)) in layouts.iter().enumerate() {
            // Every layout is tested with every frame size, in mono, and in stereo with one instance for both channels.
            let size = sizes[(turn + number) % sizes.len()];
            let width = 1 + (turn + number / 2) % 2;
            let label = ["alphamf_mono", "alphamf_stereo"][width - 1];
            let layout = format!("{}{planar}", format.ffmpeg());
            let input = recording(rate, width, format, 0.2);
            let chain = format!("aformat={layout},asetnsamples={size}:0,{}", ladspa(label, options));
            run.add(&input, format, &chain);
            wanted.push((format!("{rate} Hz, {layout}, {label}, {size}"), expected(&input, true, controls)));
        }
        for (made, (name, wanted)) in run.outputs().into_iter().zip(wanted) {
            assert!(made == wanted, "{name}: {} samples of {}", made.len(), wanted.len());
        }
    }
}

#[test]
fn surround_is_denoised_channel_by_channel() {
    if !has_filter() {
        return;
    }
    let input = recording(48_000, 6, Format::S16, 0.3);
    let mono = ladspa("alphamf_mono", "");
    let names = ["a", "b", "c", "d", "e", "f"];
    let labels = |end: &str| names.map(|name| format!("[{name}{end}]")).concat();
    let each = names.map(|name| format!("[{name}]{mono}[{name}1]")).join(";");
    let split = format!(
        "aformat=channel_layouts=5.1,channelsplit=5.1{};{each};{}join=6:5.1",
        labels(""),
        labels("1")
    );
    let mut run = Run::new();
    run.add(&input, Format::S16, &split);
    // Without splitting, ffmpeg makes an instance for each channel.
    run.add(&input, Format::S16, &mono);
    let wanted = expected(&input, false, LiveControls::default());
    for made in run.outputs() {
        assert!(made == wanted, "{} samples of {}", made.len(), wanted.len());
    }
}

#[test]
fn its_delay_is_compensated_on_demand() {
    if !has_filter() {
        return;
    }
    for rate in [8_000, 44_100, 192_000] {
        let input = recording(rate, 1, Format::F32, 0.2);
        let mut run = Run::new();
        run.add(&input, Format::F32, &ladspa("alphamf_mono", ":controls=c3=1:latency=1"));
        assert!(run.outputs()[0] == input.samples, "{rate} Hz");
    }
}

/// The filters of the README for a film keep every sample of every channel; bypassed, samples are unchanged.
#[test]
fn one_channel_of_a_film_is_denoised_in_step_with_the_others() {
    if !has_filter() {
        return;
    }
    let readme = include_str!("../README.md").replace("\\\n", "");
    let (_, filters) = readme.split_once("-filter_complex \"").unwrap();
    let (filters, _) = filters.split_once('"').unwrap();
    let path = plugin().display().to_string();
    let filters = filters
        .replace("./target/release/libalphamf_ladspa.so", &path)
        .replace(":latency", ":controls=c3=1:latency");
    let mut run = Run::new();
    let input = recording(48_000, 6, Format::S16, 0.5);
    run.add(&input, Format::S16, &format!("aformat=channel_layouts=5.1,{filters}"));
    let made = &run.outputs()[0];
    assert!(*made == input.samples, "{} samples of {}", made.len(), input.samples.len());
}

/// ffmpeg cleans up instances that could not be created.
#[test]
fn a_rate_out_of_range_is_an_error_of_ffmpeg_and_no_crash() {
    if !has_filter() {
        return;
    }
    for rate in [7_999, 192_001] {
        let mut run = Run::new();
        run.add(&recording(rate, 1, Format::S16, 0.1), Format::S16, &ladspa("alphamf_mono", ""));
        let output = run.command().output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // A process that was killed by a signal has no exit code.
        assert!(output.status.code().is_some_and(|code| code != 0), "{rate} Hz: {}: {said}", output.status);
        assert!(said.contains("Could not instantiate plugin"), "{rate} Hz: {said}");
    }
}
