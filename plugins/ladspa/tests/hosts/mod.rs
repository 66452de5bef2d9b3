//! Common parts of the tests of the plugin in hosts: signals in every sample format, and the library's output for them.

use alphamf::denoiser::{LiveControls, LiveSettings};
use alphamf::{Denoiser, Dictionary, Settings};
use std::path::PathBuf;
use std::sync::LazyLock;

/// Sample rates of sound cards, telephones and converters, from the lowest to the highest that the plugin accepts.
pub const RATES: [u32; 11] =
    [8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 88_200, 96_000, 192_000];

/// Library that cargo built for this test.
pub fn plugin() -> PathBuf {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    let found = [folder.clone(), folder.join("..")].map(|folder| {
        folder.join(format!("{}alphamf_ladspa{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX))
    });
    let found = found.into_iter().find(|path| path.exists()).expect("the plugin beside its test");
    found.canonicalize().unwrap()
}

/// Sample formats, little endian.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Format {
    S16,
    S32,
    F32,
    F64,
}

pub const FORMATS: [Format; 4] = [Format::S16, Format::S32, Format::F32, Format::F64];

impl Format {
    /// Encodes a sample; returns its bytes, and the nearest float, which the plugin receives.
    pub fn encode(self, x: f64) -> (Vec<u8>, f32) {
        match self {
            Self::S16 => {
                let code = (x * 32_768.0).round() as i16;
                (code.to_le_bytes().to_vec(), f32::from(code) / 32_768.0)
            }
            Self::S32 => {
                let code = (x * 2_147_483_648.0).round() as i32;
                (code.to_le_bytes().to_vec(), code as f32 / 2_147_483_648.0)
            }
            Self::F32 => ((x as f32).to_le_bytes().to_vec(), x as f32),
            Self::F64 => (x.to_le_bytes().to_vec(), x as f32),
        }
    }
}

/// An interleaved recording of noise and a tone, and its bytes.
pub struct Recording {
    pub bytes: Vec<u8>,
    pub samples: Vec<f32>,
    pub width: usize,
    pub rate: u32,
}

pub fn recording(rate: u32, width: usize, format: Format, seconds: f64) -> Recording {
    let mut state = rate + width as u32;
    let mut noise = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        0.1 * (f64::from(state >> 8) / 8_388_608.0 - 1.0)
    };
    let frames = (seconds * f64::from(rate)) as usize;
    let mut recording = Recording { bytes: Vec::new(), samples: Vec::new(), width, rate };
    for n in 0..frames {
        for channel in 0..width {
            let tone = (2_000.0 + 300.0 * channel as f64) * n as f64 / f64::from(rate);
            let (bytes, sample) = format.encode(noise() + 0.2 * tone.sin());
            recording.bytes.extend(bytes);
            recording.samples.push(sample);
        }
    }
    recording
}

/// The library's output for a recording, with one gain for all channels or one for each.
pub fn expected(recording: &Recording, shared: bool, controls: LiveControls) -> Vec<f32> {
    static DENOISER: LazyLock<Denoiser> =
        LazyLock::new(|| Denoiser::new(Dictionary::built_in().unwrap(), Settings::default()).unwrap());
    let &Recording { ref samples, width, rate, .. } = recording;
    let settings = LiveSettings { controls, ..LiveSettings::default() };
    let mut output = vec![0.0; samples.len()];
    if shared {
        DENOISER.live(rate, width, settings).unwrap().process(samples, &mut output);
    } else {
        for channel in 0..width {
            let input: Vec<f32> = samples[channel..].iter().step_by(width).copied().collect();
            let mut denoised = vec![0.0; input.len()];
            DENOISER.live(rate, 1, settings.clone()).unwrap().process(&input, &mut denoised);
            output[channel..].iter_mut().step_by(width).zip(denoised).for_each(|(y, x)| *y = x);
        }
    }
    assert!(output.iter().any(|x| x.abs() > 0.01));
    output
}

/// Samples of a file of raw 32-bit floats.
pub fn floats(path: &std::path::Path) -> Vec<f32> {
    let bytes = std::fs::read(path).unwrap();
    bytes.chunks_exact(4).map(|code| f32::from_le_bytes(code.try_into().unwrap())).collect()
}
