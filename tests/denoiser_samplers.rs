//! Every sampler within the denoiser, at its defaults, on a piece of the demo clip.

use alphamf::audio::{self, Signal};
use alphamf::inference::{Denoiser, ImpulseMode, Positivity, Settings};
use alphamf::metrics::si_sdr;
use alphamf::model::Dictionary;
use alphamf::samplers::SamplerKind;
use std::ops::ControlFlow;
use std::path::Path;

fn piece(name: &str) -> Signal {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("audio").join(name);
    let whole = audio::read(path).unwrap();
    whole.with_channels(vec![whole.channels()[0][16_000..40_000].to_vec()]).unwrap()
}

#[test]
fn no_sampler_at_its_defaults_spoils_the_warm_start() {
    let (clean, noisy) = (piece("demo-clean.wav"), piece("demo-noisy.wav"));
    let samples = |signal: &Signal| signal.channels()[0].iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    let score = |settings: Settings| {
        let denoiser = Denoiser::new(Dictionary::shipped().unwrap(), settings).unwrap();
        let denoised = denoiser.denoise(&noisy, &mut |_| ControlFlow::Continue(())).unwrap();
        let sampler = denoiser.settings().sampler;
        // A far proposal may overflow before it is rejected.
        let proposes = matches!(sampler, SamplerKind::MhBfgs | SamplerKind::HmcBfgs | SamplerKind::Qnhmc);
        assert!(denoised.summary.divergences == 0 || proposes, "{sampler}");
        si_sdr(&samples(&clean), &samples(&denoised.signal)).unwrap()
    };
    // The refiner would hide what the sampler does.
    let plain = Settings { refine: false, ..Settings::default() };
    let short = |sampler| Settings { sampler, iterations: 12, burn_in: 4, ..plain.clone() };
    let warm = score(Settings { iterations: 0, burn_in: 0, ..plain.clone() });
    let mut worse = Vec::new();
    for kind in SamplerKind::ALL {
        let change = score(short(kind)) - warm;
        println!("{kind}: {change:+.3} dB");
        // NMC has no step size to keep it near the warm start, which has a better score than the posterior.
        let allowed = if kind == SamplerKind::Newtonian { -2.0 } else { -0.1 };
        if change < allowed {
            worse.push((kind, change));
        }
    }
    let paper = Settings {
        positivity: Positivity::Mirrored,
        impulses: ImpulseMode::Sampled,
        ..short(SamplerKind::Hamcmc)
    };
    let change = score(paper) - warm;
    println!("as in the paper: {change:+.3} dB");
    assert!(change > -0.1, "as in the paper: {change}");
    assert!(worse.is_empty(), "SI-SDR over that of the warm start: {worse:?}");
}
