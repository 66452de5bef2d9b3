//! The plugin in a host: GStreamer's wrapper of LADSPA plugins, of its "bad" set.

mod hosts;

use alphamf::denoiser::LiveControls;
use hosts::{FORMATS, Format, RATES, expected, floats, plugin, recording};
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// A tool of GStreamer that finds the plugin, and keeps its registry in `folder`.
fn tool(name: &str, folder: &Path) -> Command {
    let mut command = Command::new(name);
    command.env("LADSPA_PATH", plugin().parent().unwrap()).env("GST_REGISTRY", folder.join("registry"));
    command
}

/// Name of an element: the names of its library and its label, with `-` for `.` and `_`.
fn element(label: &str) -> String {
    let library = plugin().file_name().unwrap().to_string_lossy().replace(['.', '_'], "-");
    format!("ladspa-{library}-{}", label.replace('_', "-"))
}

#[test]
fn every_rate_sample_format_and_buffer_size_gives_the_librarys_output_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let found = tool("gst-inspect-1.0", folder.path()).arg(element("alphamf_mono")).output();
    if !found.is_ok_and(|output| output.status.success()) {
        std::io::stderr()
            .write_all(b"SKIPPED: no gst-launch-1.0 with LADSPA (gstreamer1.0-plugins-bad)\n")
            .unwrap();
        return;
    }
    let (source, target) = (folder.path().join("in.raw"), folder.path().join("out.raw"));
    let controls = LiveControls { floor_db: -20.0, mix: 0.75, ..LiveControls::default() };
    for (turn, rate) in RATES.into_iter().enumerate() {
        let format = FORMATS[turn % FORMATS.len()];
        // A buffer may end within a sample, as the parser reassembles samples.
        let size = [4_097, 64, 100_000][turn % 3];
        let width = 1 + turn / 2 % 2;
        let label = ["alphamf_mono", "alphamf_stereo"][width - 1];
        let input = recording(rate, width, format, 0.2);
        std::fs::write(&source, &input.bytes).unwrap();
        let name = match format {
            Format::S16 => "s16le",
            Format::S32 => "s32le",
            Format::F32 => "f32le",
            Format::F64 => "f64le",
        };
        let output = tool("gst-launch-1.0", folder.path())
            .args([
                "-q",
                "filesrc",
                &format!("blocksize={size}"),
                &format!("location={}", source.display()),
                "!",
            ])
            .args(["rawaudioparse", "format=pcm", &format!("pcm-format={name}")])
            .args([&format!("sample-rate={rate}"), &format!("num-channels={width}"), "!"])
            .args(["audioconvert", "!", &element(label), "floor=-20", "mix=0.75", "!"])
            .args(["audioconvert", "!", "audio/x-raw,format=F32LE", "!"])
            .args(["filesink", &format!("location={}", target.display())])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let (made, wanted) = (floats(&target), expected(&input, true, controls));
        assert!(made == wanted, "{rate} Hz, {name}, {label}: {} samples of {}", made.len(), wanted.len());
    }
}
