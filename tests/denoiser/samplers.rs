//! Every sampler within the denoiser, at its defaults, on a piece of the demo clip.

use super::shared::{demo, denoiser};
use alphamf::denoiser::{GainSettings, ImpulseMode, Positivity, SamplingSettings, Settings};
use alphamf::samplers::SamplerKind;
use alphamf::signal::Signal;
use alphamf_eval::metrics::si_sdr;
use rayon::prelude::*;

fn piece(name: &str) -> Signal {
    let whole = demo(name);
    whole.with_channels(vec![whole.channels()[0][16_000..40_000].to_vec()]).unwrap()
}

#[test]
fn no_sampler_at_its_defaults_spoils_the_warm_start() {
    let (clean, noisy) = (piece("demo-clean.wav"), piece("demo-noisy.wav"));
    let score = |settings: Settings| {
        let denoiser = denoiser(settings);
        let denoised = denoiser.denoise(&noisy).unwrap();
        let sampler = denoiser.settings().sampling.as_ref().map(|sampling| sampling.sampler);
        // A far proposal may overflow before it is rejected.
        let proposes = matches!(
            sampler,
            Some(SamplerKind::MhBfgs | SamplerKind::HmcBfgs | SamplerKind::Qnhmc | SamplerKind::Newtonian)
        );
        assert!(denoised.statistics.divergences == 0 || proposes, "{sampler:?}");
        si_sdr(&clean.channels()[0], &denoised.signal.channels()[0]).unwrap()
    };
    // The network would mask the effect of the sampler.
    let gain = GainSettings { speech_presence: false, ..GainSettings::default() };
    let with = |sampling| Settings { sampling, gain: gain.clone(), ..Settings::default() };
    let short = |sampler| SamplingSettings { sampler, iterations: 12, burn_in: 4, ..Default::default() };
    let warm = score(with(None));
    let worse: Vec<(SamplerKind, f64)> = SamplerKind::ALL
        .into_par_iter()
        .map(|kind| (kind, score(with(Some(short(kind)))) - warm))
        .inspect(|(kind, change)| println!("{kind}: {change:+.3} dB"))
        // NMC and NUTS move far from the warm start in a sweep; the warm start has a better score than the posterior.
        .filter(|&(kind, change)| {
            change < if matches!(kind, SamplerKind::Newtonian | SamplerKind::Nuts) { -2.0 } else { -0.1 }
        })
        .collect();
    let paper = SamplingSettings {
        positivity: Positivity::Mirrored,
        impulses: ImpulseMode::Sampled,
        ..short(SamplerKind::Hamcmc)
    };
    let change = score(with(Some(paper))) - warm;
    println!("as in the paper: {change:+.3} dB");
    assert!(change > -0.1, "as in the paper: {change}");
    assert!(worse.is_empty(), "SI-SDR over that of the warm start: {worse:?}");
}

#[test]
fn the_published_sampler_mirrors_and_clips_few_moves() {
    let mut settings = Settings::published();
    let sampling = settings.sampling.take().unwrap();
    settings.sampling = Some(SamplingSettings { iterations: 60, burn_in: 20, ..sampling });
    let denoiser = denoiser(settings);
    let statistics = denoiser.denoise(&piece("demo-noisy.wav")).unwrap().statistics;
    let counters = statistics.sampler.unwrap();
    println!("{counters:?}");
    assert_eq!(statistics.divergences, 0);
    // A memory of five has four pairs.
    assert!((1.0..4.0).contains(&counters.usable_pairs.unwrap()), "{counters:?}");
    assert!((1e-6..0.05).contains(&counters.mirrored_fraction.unwrap()), "{counters:?}");
    // From a start at the recording's level, 60 sweeps may never reach the limit of the drift.
    assert!(counters.clipped_drift_fraction.unwrap() < 0.05, "{counters:?}");
    assert!(counters.impulse_acceptance.unwrap() > 0.5, "{counters:?}");
}
