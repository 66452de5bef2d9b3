//! The plugin in a host: ffmpeg's filter `ladspa`.

use alphamf::denoiser::{LiveControls, LiveSettings};
use alphamf::{Denoiser, Dictionary, Settings};
use hound::{SampleFormat, WavReader, WavSpec, WavWriter};
use std::path::PathBuf;
use std::process::Command;

fn has_filter() -> bool {
    let filters = Command::new("ffmpeg").args(["-hide_banner", "-filters"]).output();
    filters.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(" ladspa "))
}

/// Library that cargo built for this test.
fn plugin() -> PathBuf {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    let found = [folder.clone(), folder.join("..")].map(|folder| {
        folder.join(format!("{}alphamf_ladspa{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX))
    });
    found.into_iter().find(|path| path.exists()).expect("the plugin beside its test")
}

#[test]
fn what_ffmpeg_makes_of_it_is_the_librarys_bit_for_bit() {
    if !has_filter() {
        eprintln!("SKIPPED: no ffmpeg with the filter ladspa");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (noisy, voice) = (folder.path().join("noisy.wav"), folder.path().join("voice.wav"));
    let settings = LiveSettings {
        controls: LiveControls { floor_db: -20.0, mix: 0.75, ..LiveControls::default() },
        ..LiveSettings::default()
    };
    for (label, rate, width) in [("alphamf_mono", 16_000, 1_u16), ("alphamf_stereo", 44_100, 2)] {
        let spec = WavSpec {
            channels: width,
            sample_rate: rate,
            bits_per_sample: 32,
            sample_format: SampleFormat::Float,
        };
        let mut state = 1_u32;
        let mut noise = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            0.1 * ((state >> 8) as f32 / 8_388_608.0 - 1.0)
        };
        let input: Vec<f32> =
            (0..usize::from(width) * 20_011).map(|n| noise() + 0.2 * (n as f32 * 0.05).sin()).collect();
        let mut writer = WavWriter::create(&noisy, spec).unwrap();
        input.iter().for_each(|x| writer.write_sample(*x).unwrap());
        writer.finalize().unwrap();

        let filter = format!("ladspa=file={}:plugin={label}:controls=c1=-20|c2=0.75", plugin().display());
        let output = Command::new("ffmpeg")
            .args(["-hide_banner", "-loglevel", "error", "-y", "-i"])
            .arg(&noisy)
            .args(["-af", &filter, "-c:a", "pcm_f32le"])
            .arg(&voice)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let made: Vec<f32> = WavReader::open(&voice).unwrap().into_samples().map(Result::unwrap).collect();

        let denoiser = Denoiser::new(Dictionary::built_in().unwrap(), Settings::default()).unwrap();
        let mut live = denoiser.live(rate, width.into(), settings.clone()).unwrap();
        let mut expected = vec![0.0; input.len()];
        live.process(&input, &mut expected);
        assert!(expected.iter().any(|x| x.abs() > 0.01));
        assert!(made == expected, "{label}");
    }
}
