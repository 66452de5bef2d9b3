//! Causal low-latency denoiser for real-time audio.

mod settings;
mod steady;

use super::DenoiseError;
use super::voice_activity::{VoiceActivity, VoiceDetector, VoiceEvent};
use crate::decibels::amplitude;
use crate::denoiser::block::Separator;
use crate::inference::online::OnlineSeparation;
use crate::kernels::vector;
use crate::presence::{CausalPresenceNet, RecentPresence};
use crate::range::{SettingsError, within};
use crate::repair::{LiveClicks, LiveHum, LiveOffset};
use crate::signal::check_recording;
use crate::transform::{LowDelayChannel, LowDelayStft, WINDOW_RANGE_SECONDS};
use crate::wiener::fusion::{HIGH_BAND_WEIGHT, WEIGHT, pool_frame};
use serde::Serialize;
pub use settings::{DEFAULT_LATENCY_MS, LATENCY_RANGE_SECONDS, LiveControls, LiveSettings};
use std::fmt;
use std::sync::Arc;
use steady::SteadySounds;

/// Highest frequency of the causal network, Hz. Above it, the log odds are those of its highest band.
const NETWORK_HERTZ: f64 = 8000.0;
/// Ramp time of mix and bypass, and time constant of the other controls, s.
const RAMP_SECONDS: f64 = 0.02;
/// Time constant of the meters, s.
const METER_SECONDS: f64 = 0.1;
/// Mean power below which a frame counts as digital silence and does not change the state.
const SILENT_POWER: f32 = 1e-11;
/// Maximum amplitude of samples, 40 dB above full scale.
const MAX_AMPLITUDE: f32 = 100.0;
/// Additional gain where the network has detected no speech recently, dB.
const PAUSE_DB: f64 = -15.0;
/// Samples closer to zero are set to zero: subnormal numbers are slow.
const MIN_AMPLITUDE: f32 = 1e-15;
/// Difference below which a control is set to its target.
const MIN_CONTROL_DIFFERENCE: f32 = 1e-6;

/// Levels measured by a [`LiveDenoiser`] over the last 0.1 s, mean squares relative to full scale ±1, dB, at least -120; and the
/// probability of speech.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LiveMeters {
    /// Level of the estimated noise, dBFS.
    pub noise_dbfs: f32,
    /// Level of the denoised signal, dBFS.
    pub speech_dbfs: f32,
    /// Level of the denoised signal relative to the input, before they are mixed, dB.
    pub gain_db: f32,
    /// Probability of speech in the last frame, 0 to 1, that of [`VoiceActivity`].
    pub speech_probability: f32,
}

/// Removes noise from real-time audio causally; made by [`Denoiser::live`](super::Denoiser::live).
///
/// Output follows input by exactly [`latency`](Self::latency) samples. Blocks may have any size; the output does not
/// depend on it. All channels share one gain. The first window, of 64 ms with the built-in dictionary, counts as noise;
/// then the noise estimate adapts. A constant offset and sharp clicks of up to 8 ms, at more than 2.5 per second, are
/// removed too. Subtraction of hum begins 1.5 to 3 s after its onset. After construction, no method allocates, blocks
/// or panics.
///
/// ```
/// use alphamf::denoiser::{LiveControls, LiveSettings};
/// use alphamf::{Denoiser, Dictionary, Settings};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let denoiser = Denoiser::new(Dictionary::built_in()?, Settings::default())?;
/// let mut live = denoiser.live(48_000, 2, LiveSettings::default())?;
/// assert_eq!(live.latency(), 768);
/// live.set_controls(LiveControls { mix: 0.9, ..LiveControls::default() });
/// let (microphone, mut call) = ([0.0_f32; 2 * 480], [0.0_f32; 2 * 480]);
/// live.process(&microphone, &mut call);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LiveDenoiser {
    stft: LowDelayStft,
    channels: Vec<Channel>,
    /// Samples of the present hop so far.
    filled: usize,
    presence_net: Option<CausalPresenceNet>,
    recent_presence: RecentPresence,
    /// First bin above 8 kHz, or the number of bins.
    high: usize,
    steady: SteadySounds,
    separation: OnlineSeparation,
    /// Frames until the first window is complete.
    missing: usize,
    /// Inverse of the power per bin of white noise with mean square 1, summed over channels.
    scale: f32,
    power: Vec<f32>,
    gain: Vec<f32>,
    target: LiveControls,
    gain_exponent: f32,
    floor_db: f32,
    mix: f32,
    mix_step: f32,
    control_step: f32,
    noise_capture: NoiseCapture,
    meters: Meters,
    voice: VoiceDetector,
}

#[derive(Clone)]
struct Channel {
    frames: LowDelayChannel,
    offset: LiveOffset,
    hum: LiveHum,
    /// Hum removed from the input samples within the latency.
    removed_hum: Vec<f32>,
    clicks: LiveClicks,
    /// Input samples within the latency, a ring buffer of hops.
    dry: Vec<f32>,
    /// Start of the present hop in the ring buffers.
    at: usize,
    /// Denoised samples of one hop, delayed by the latency.
    wet: Vec<f32>,
}

/// The noise section that is being captured, or was captured last.
#[derive(Clone)]
struct NoiseCapture {
    /// Number of frames still to capture.
    left: usize,
    /// Number of captured frames.
    done: usize,
    /// Whether the next frame replaces the previous capture.
    is_new: bool,
    power: Vec<f32>,
}

impl NoiseCapture {
    /// Averages the power per bin of the next frame.
    fn add(&mut self, power: &[f32]) {
        if std::mem::take(&mut self.is_new) {
            self.done = 0;
            self.power.fill(0.0);
        }
        self.done += 1;
        let weight = 1.0 / self.done as f32;
        self.power.iter_mut().zip(power).for_each(|(mean, power)| *mean += weight * (power - *mean));
    }
}

/// Mean powers, smoothed by `keep` per frame.
#[derive(Clone)]
struct Meters {
    keep: f32,
    /// Mean powers of the noise, the output and the input.
    levels: [f32; 3],
}

impl fmt::Debug for LiveDenoiser {
    /// Formats latency, channels and controls, without the state.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LiveDenoiser")
            .field("latency", &self.latency())
            .field("channels", &self.channels())
            .field("controls", &self.target)
            .finish_non_exhaustive()
    }
}

impl LiveDenoiser {
    pub(super) fn new(
        separator: &Separator,
        sample_rate: u32,
        channels: usize,
        settings: LiveSettings,
    ) -> Result<Self, DenoiseError> {
        let LiveSettings { latency_seconds, controls } = settings;
        let window_seconds = separator.dictionary.header().window_seconds;
        let (least, most) = LATENCY_RANGE_SECONDS.into_inner();
        within("dictionary.window_seconds", window_seconds, least..=*WINDOW_RANGE_SECONDS.end())?;
        if window_seconds < most && latency_seconds > window_seconds {
            // The default latency, too, exceeds a short window. Interfaces use ms, with their own names and checks.
            let ms = |seconds: f64| (1e6 * seconds).round() / 1e3;
            return Err(DenoiseError::from(SettingsError {
                name: "latency",
                value: format!("{} ms", ms(latency_seconds)),
                expected: format!("{} to {} ms, a window of the dictionary", ms(least), ms(window_seconds)),
            }));
        }
        within("latency_seconds", latency_seconds, least..=most.min(window_seconds))?;
        controls.validate()?;
        check_recording(sample_rate, channels)?;
        let stft = LowDelayStft::new(sample_rate, window_seconds, latency_seconds)?;
        let (bins, hop, seconds) = (stft.bins(), stft.hop(), stft.frame_seconds());
        let high = ((NETWORK_HERTZ * window_seconds).round() as usize + 1).min(bins);
        let causal = separator.networks.as_ref().map(|networks| Arc::clone(&networks.causal));
        let presence_net = causal.map(|network| CausalPresenceNet::new(network, bins, seconds));
        let step = |time: f64| (1.0 - libm::exp(-seconds / time)) as f32;
        let hum = LiveHum::new(sample_rate)?;
        let channel = || Channel {
            frames: stft.channel(),
            offset: LiveOffset::new(sample_rate),
            hum: hum.clone(),
            removed_hum: vec![0.0; stft.delay()],
            clicks: LiveClicks::new(sample_rate, hop),
            dry: vec![0.0; stft.delay()],
            at: 0,
            wet: vec![0.0; hop],
        };
        let mut live = Self {
            channels: (0..channels).map(|_| channel()).collect(),
            filled: 0,
            presence_net,
            recent_presence: RecentPresence::new(bins, seconds),
            high,
            steady: SteadySounds::new(bins - high, seconds),
            separation: separator.online(bins, seconds),
            missing: 0,
            scale: 1.0 / (stft.white_power() * channels as f32),
            power: vec![0.0; bins],
            gain: vec![0.0; bins],
            target: controls,
            gain_exponent: 0.0,
            floor_db: 0.0,
            mix: 0.0,
            mix_step: (1.0 / (RAMP_SECONDS * f64::from(sample_rate))) as f32,
            control_step: step(RAMP_SECONDS),
            noise_capture: NoiseCapture { left: 0, done: 0, is_new: false, power: vec![0.0; bins] },
            meters: Meters { keep: 1.0 - step(METER_SECONDS), levels: [0.0; 3] },
            voice: VoiceDetector::new(bins, 1.0 / window_seconds, hop, seconds),
            stft,
        };
        live.reset();
        Ok(live)
    }

    /// Latency from input to output, samples per channel.
    #[must_use]
    pub fn latency(&self) -> usize {
        self.stft.delay()
    }

    /// Number of channels.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// The present controls.
    #[must_use]
    pub fn controls(&self) -> LiveControls {
        self.target
    }

    /// Changes the controls smoothly; values out of range are clamped.
    pub fn set_controls(&mut self, controls: LiveControls) {
        self.target = controls.clamped();
    }

    /// Estimates the noise from the next `seconds` of input, which should hold noise alone; infinity has no end, and
    /// zero stops the estimate. Meanwhile the gain is [`floor_db`](LiveControls::floor_db), multiplied in dB by an
    /// exponent below 1. Previously learned noise is kept until the first frame with sound.
    pub fn learn_noise(&mut self, seconds: f64) {
        // A conversion from float to integer saturates.
        self.noise_capture.left = (seconds / self.stft.frame_seconds()).round() as usize;
        self.noise_capture.is_new = true;
    }

    /// Mean power per bin of the last learned noise, relative to white noise at full scale ±1; `None` without learned
    /// noise. A later session may pass it to [`set_learned_noise`](Self::set_learned_noise).
    #[must_use]
    pub fn learned_noise(&self) -> Option<&[f32]> {
        (self.noise_capture.done > 0).then_some(&self.noise_capture.power)
    }

    /// Sets the learned noise to `power`, and starts the noise estimate from it; `None` discards the learned noise.
    ///
    /// # Errors
    /// [`DenoiseError::NoiseBins`] if the number of powers is not the number of bins, as for
    /// [`learned_noise`](Self::learned_noise) at another sample rate; [`DenoiseError::Settings`] if a power is negative
    /// or not finite. The state is unchanged then.
    pub fn set_learned_noise(&mut self, power: Option<&[f32]>) -> Result<(), DenoiseError> {
        let Some(power) = power else {
            (self.noise_capture.left, self.noise_capture.done) = (0, 0);
            return Ok(());
        };
        let (found, expected) = (power.len(), self.power.len());
        if found != expected {
            return Err(DenoiseError::NoiseBins { found, expected });
        }
        power.iter().try_for_each(|&power| within("learned noise", power, 0.0..=f32::MAX))?;
        self.noise_capture.power.copy_from_slice(power);
        (self.noise_capture.left, self.noise_capture.done) = (0, 1);
        self.separation.set_noise(power);
        Ok(())
    }

    /// Levels over the last 0.1 s.
    #[must_use]
    pub fn meters(&self) -> LiveMeters {
        let decibels = |power: f32| 10.0 * libm::log10f(power.max(1e-12));
        let [noise, speech, before] = self.meters.levels;
        LiveMeters {
            noise_dbfs: decibels(noise),
            speech_dbfs: decibels(speech),
            gain_db: if before > 0.0 { decibels(speech / before) } else { 0.0 },
            speech_probability: self.voice.activity().probability,
        }
    }

    /// Voice activity of the last frame. [`process_with_events`](Self::process_with_events) reports every change.
    #[must_use]
    pub fn voice_activity(&self) -> VoiceActivity {
        self.voice.activity()
    }

    /// Resets audio and estimates to the initial state. Controls and learned noise are kept.
    pub fn reset(&mut self) {
        for channel in &mut self.channels {
            channel.frames.reset();
            channel.offset.reset();
            channel.hum.reset();
            channel.removed_hum.fill(0.0);
            channel.clicks.reset();
            channel.dry.fill(0.0);
            channel.wet.fill(0.0);
            channel.at = 0;
        }
        if let Some(net) = &mut self.presence_net {
            net.reset();
        }
        self.recent_presence.reset();
        self.steady.reset();
        self.separation.reset();
        let hop = self.stft.hop();
        self.missing = (self.stft.window() - hop) / hop;
        self.filled = 0;
        let controls = self.target;
        (self.gain_exponent, self.floor_db) = (controls.gain_exponent, controls.floor_db);
        self.mix = target_mix(controls);
        self.noise_capture.left = 0;
        self.meters.levels.fill(0.0);
        self.voice.reset();
    }

    /// Like [`reset`](Self::reset), but the noise estimate starts from the last learned noise, if any.
    pub fn reset_to_learned_noise(&mut self) {
        self.reset();
        if self.noise_capture.done > 0 {
            self.separation.set_noise(&self.noise_capture.power);
        }
    }

    /// Denoises the next samples (full scale ±1, channels interleaved), and writes an equal number of samples, delayed
    /// by [`latency`](Self::latency). Non-finite samples count as zero. Surplus input is ignored and surplus output
    /// zeroed if the lengths differ or end in mid-frame.
    pub fn process(&mut self, input: &[f32], output: &mut [f32]) {
        self.process_with_events(input, output, |_| {});
    }

    /// Like [`process`](Self::process); `on_event` receives the starts and ends of speech in the block, in their order.
    pub fn process_with_events(
        &mut self,
        input: &[f32],
        output: &mut [f32],
        mut on_event: impl FnMut(VoiceEvent),
    ) {
        self.process_hops(input, output, &mut on_event);
    }

    /// Like [`process_with_events`](Self::process_with_events), compiled once for all callbacks.
    fn process_hops(&mut self, input: &[f32], output: &mut [f32], on_event: &mut dyn FnMut(VoiceEvent)) {
        let (width, hop) = (self.channels.len(), self.stft.hop());
        let frames = input.len().min(output.len()) / width;
        let (output, surplus) = output.split_at_mut(frames * width);
        surplus.fill(0.0);
        let mut done = 0;
        while done < frames {
            let count = (frames - done).min(hop - self.filled);
            let range = done * width..(done + count) * width;
            self.transfer(&input[range.clone()], &mut output[range]);
            self.filled += count;
            done += count;
            if self.filled == hop {
                self.filled = 0;
                self.process_hop();
                let LiveControls { voice_threshold, voice_hang_over_seconds, .. } = self.target;
                if let Some(event) = self.voice.advance(voice_threshold, voice_hang_over_seconds) {
                    on_event(event);
                }
            }
        }
    }

    /// Stores input samples of the present hop, and writes the output samples that are due.
    fn transfer(&mut self, input: &[f32], output: &mut [f32]) {
        let (width, filled) = (self.channels.len(), self.filled);
        let target_mix = target_mix(self.target);
        let start = self.mix;
        for (index, channel) in self.channels.iter_mut().enumerate() {
            // Every channel has the same ramp.
            self.mix = start;
            let dry = channel.dry[channel.at + filled..].iter_mut();
            let due = dry.zip(&channel.wet[filled..]);
            let samples = input[index..].iter().step_by(width).zip(output[index..].iter_mut().step_by(width));
            for ((x, y), (dry, wet)) in samples.zip(due) {
                self.mix += (target_mix - self.mix).clamp(-self.mix_step, self.mix_step);
                *y = self.mix * wet + (1.0 - self.mix) * *dry;
                *dry = if x.is_finite() { *x } else { 0.0 };
            }
        }
    }

    /// Computes the next hop of output, once the present hop is complete.
    fn process_hop(&mut self) {
        let hop = self.stft.hop();
        self.power.fill(0.0);
        let mut hum_power = 0.0;
        for channel in &mut self.channels {
            // The output of the last hop has been written, so its buffer is reused.
            let input_hop = channel.dry[channel.at..channel.at + hop].iter();
            for (y, x) in channel.wet.iter_mut().zip(input_hop) {
                *y = if x.abs() < MIN_AMPLITUDE { 0.0 } else { x.clamp(-MAX_AMPLITUDE, MAX_AMPLITUDE) };
            }
            if let Some((level, earlier)) = channel.offset.remove(&mut channel.wet) {
                channel.frames.lower(earlier, level);
            }
            // Before hum, as regular clicks have tones, too.
            channel.clicks.repair(&mut channel.wet);
            let hum = &mut channel.removed_hum[channel.at..][..hop];
            channel.hum.remove(&mut channel.wet, hum);
            hum_power += hum.iter().map(|hum| hum * hum).sum::<f32>();
            channel.at = (channel.at + hop) % channel.dry.len();
            let frame = channel.frames.analyse(&channel.wet);
            self.power.iter_mut().zip(frame).for_each(|(sum, x)| *sum += x.norm_sqr());
        }
        self.power.iter_mut().for_each(|power| *power *= self.scale);
        self.separate();
        let hum_left = self.least_gain();
        self.meter(hum_power / (hop * self.channels.len()) as f32, hum_left);
        for channel in &mut self.channels {
            channel.frames.synthesise(&self.gain, &mut channel.wet);
            let hum = &channel.removed_hum[channel.at..];
            channel.wet.iter_mut().zip(hum).for_each(|(y, hum)| *y += hum_left * hum);
        }
    }

    /// Computes the gain of the frame.
    fn separate(&mut self) {
        self.gain_exponent += self.control_step * (self.target.gain_exponent - self.gain_exponent);
        if (self.gain_exponent - self.target.gain_exponent).abs() < MIN_CONTROL_DIFFERENCE {
            self.gain_exponent = self.target.gain_exponent;
        }
        self.floor_db += self.control_step * (self.target.floor_db - self.floor_db);
        let floor = amplitude(f64::from(self.floor_db));
        let gain_exponent = self.gain_exponent;
        if !self.estimate() {
            let least = self.least_gain();
            self.gain.fill(least);
            self.voice.clear();
            return;
        }
        vector::dispatch(
            #[inline(always)]
            || {
                for gain in &mut self.gain {
                    let raised = vector::powf(*gain, gain_exponent);
                    *gain = if raised > floor { raised } else { floor };
                }
            },
        );
    }

    /// The gain of noise and hum. Exponent 0 passes the input, even without an estimate.
    fn least_gain(&self) -> f32 {
        amplitude(f64::from(self.floor_db * self.gain_exponent.min(1.0)))
    }

    /// Estimates voice activity and the gain of the frame, before exponent and floor. Returns false without an
    /// estimate: at the start, in digital silence, and during noise capture.
    fn estimate(&mut self) -> bool {
        let capturing = self.noise_capture.left > 0;
        self.noise_capture.left -= usize::from(capturing);
        let mean = self.power.iter().sum::<f32>() / self.power.len() as f32;
        if self.missing > 0 || mean < SILENT_POWER {
            self.missing = self.missing.saturating_sub(usize::from(mean >= SILENT_POWER));
            return false;
        }
        if capturing {
            self.noise_capture.add(&self.power);
            self.separation.set_noise(&self.noise_capture.power);
        }
        let log_odds = self.presence_net.as_mut().map(|net| net.log_odds(&self.power));
        let found = self.separation.separate(&self.power, log_odds);
        if let Some(log_odds) = log_odds {
            let (low, high) = found.split_at_mut(self.high);
            let (log_odds_low, log_odds_high) = log_odds.split_at(self.high);
            pool_frame(low, log_odds_low, WEIGHT);
            pool_frame(high, log_odds_high, HIGH_BAND_WEIGHT);
            let pause = amplitude(PAUSE_DB);
            let factor = pause + (1.0 - pause) * self.recent_presence.update(log_odds);
            found.iter_mut().for_each(|gain| *gain *= factor);
        }
        self.steady.attenuate(&self.power[self.high..], &mut found[self.high..]);
        if capturing {
            return false;
        }
        match log_odds {
            Some(log_odds) => self.voice.estimate(&self.power, |bin| vector::logistic(log_odds[bin])),
            None => self.voice.estimate(&self.power, |bin| found[bin]),
        }
        self.gain.copy_from_slice(found);
        true
    }

    /// Updates the meters; `hum` is the mean square of the removed hum, and `hum_left` the gain of hum in the output.
    fn meter(&mut self, hum: f32, hum_left: f32) {
        let scale = 1.0 / self.power.len() as f32;
        let before = scale * self.power.iter().sum::<f32>();
        let after =
            scale * self.power.iter().zip(&self.gain).map(|(power, gain)| gain * gain * power).sum::<f32>();
        let noise = scale * self.separation.noise().iter().sum::<f32>();
        let Meters { keep, levels } = &mut self.meters;
        for (level, now) in
            levels.iter_mut().zip([noise + hum, after + hum_left * hum_left * hum, before + hum])
        {
            // Keeps levels above the subnormal numbers.
            *level = (now + *keep * (*level - now)).max(1e-20);
        }
    }
}

/// The fraction of the denoised signal to ramp to.
fn target_mix(controls: LiveControls) -> f32 {
    if controls.bypass { 0.0 } else { controls.mix }
}
