//! Samplers with settings that suit a problem.

use alphamf_samplers::random::SeedTree;
use alphamf_samplers::*;

use super::*;

/// Makes a sampler for one chain.
pub type Factory = Box<dyn Fn(SeedTree) -> Box<dyn Sampler<f64>> + Sync>;

/// One proof: a problem, a sampler with settings that suit it, the bias that its step size explains in
/// deviations (zero for samplers with a test), and how long to run.
pub struct Case {
    pub kind: SamplerKind,
    pub problem: Problem,
    pub sampler: Factory,
    pub tolerance: f64,
    pub steps: (usize, usize),
}

fn hmc(leaps: usize) -> HmcSettings {
    HmcSettings { leaps, ..HmcSettings::default() }
}

/// Every sampler on at least three problems.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |kind, problem: Problem, tolerance, steps, sampler: Factory| {
        cases.push(Case { kind, problem, sampler, tolerance, steps: (2_000, steps) });
    };
    let mirror = |step| GradientSettings { mirror: true, drift_limit: 0.5, ..constant(step) };
    let tame = |step| GradientSettings { drift_limit: 0.5, ..constant(step) };
    let minibatch = |step| GradientSettings { minibatch: Some(40), ..constant(step) };
    let long = 60_000;
    let short = 15_000;

    add(
        SamplerKind::Sgld,
        gaussian(),
        0.03,
        long,
        Box::new(move |s| boxed(Sgld::new(2, 1, constant(0.03), s))),
    );
    add(
        SamplerKind::Sgld,
        two_peaks(),
        0.05,
        long,
        Box::new(move |s| boxed(Sgld::new(1, 1, constant(0.02), s))),
    );
    add(
        SamplerKind::Sgld,
        banana(),
        0.08,
        2 * long,
        Box::new(move |s| boxed(Sgld::new(2, 1, constant(0.01), s))),
    );
    add(SamplerKind::Sgld, gammas(), 0.05, long, Box::new(move |s| boxed(Sgld::new(2, 1, mirror(0.05), s))));
    add(
        SamplerKind::Sgld,
        regression(),
        0.08,
        long,
        Box::new(move |s| boxed(Sgld::new(2, 1, minibatch(0.0005), s))),
    );

    let psgld =
        |gradient| PsgldSettings { gradient, forgetting: 0.999, regularisation: 0.1, correction: false };
    add(
        SamplerKind::Psgld,
        gaussian(),
        0.05,
        long,
        Box::new(move |s| boxed(Psgld::new(2, 1, psgld(constant(0.03)), s))),
    );
    add(
        SamplerKind::Psgld,
        two_peaks(),
        0.08,
        long,
        Box::new(move |s| boxed(Psgld::new(1, 1, psgld(constant(0.06)), s))),
    );
    add(
        SamplerKind::Psgld,
        gammas(),
        0.08,
        long,
        Box::new(move |s| boxed(Psgld::new(2, 1, psgld(mirror(0.03)), s))),
    );

    add(
        SamplerKind::Sgrld,
        gaussian(),
        0.04,
        short,
        Box::new(move |s| boxed(Sgrld::new(2, 1, constant(0.05), s))),
    );
    add(
        SamplerKind::Sgrld,
        two_peaks(),
        0.05,
        2 * long,
        Box::new(move |s| boxed(Sgrld::new(1, 1, constant(0.005), s))),
    );
    add(
        SamplerKind::Sgrld,
        banana(),
        0.08,
        2 * long,
        Box::new(move |s| boxed(Sgrld::new(2, 1, constant(0.004), s))),
    );
    add(
        SamplerKind::Sgrld,
        gammas(),
        0.05,
        long,
        Box::new(move |s| boxed(Sgrld::new(2, 1, mirror(0.04), s))),
    );

    let hamcmc = |gradient, memory, gamma, trust_region| HamcmcSettings {
        gradient,
        memory,
        initial_scale: InitialScale::Fixed(gamma),
        refresh_interval: 1,
        trust_region,
    };
    let seldom = |settings| HamcmcSettings { refresh_interval: 8, ..settings };
    add(
        SamplerKind::Hamcmc,
        gaussian(),
        0.04,
        long,
        Box::new(move |s| boxed(Hamcmc::new(2, 1, hamcmc(constant(0.05), 3, 0.3, 0.0), s))),
    );
    add(
        SamplerKind::Hamcmc,
        one_peak(),
        0.05,
        long,
        Box::new(move |s| boxed(Hamcmc::new(1, 1, hamcmc(constant(0.05), 2, 0.5, 0.0), s))),
    );
    add(
        SamplerKind::Hamcmc,
        two_peaks(),
        0.05,
        long,
        Box::new(move |s| boxed(Hamcmc::new(1, 1, hamcmc(constant(0.1), 2, 0.2, 5.0), s))),
    );
    add(
        SamplerKind::Hamcmc,
        banana(),
        0.08,
        2 * long,
        Box::new(move |s| boxed(Hamcmc::new(2, 1, hamcmc(constant(0.1), 3, 0.04, 20.0), s))),
    );
    add(
        SamplerKind::Hamcmc,
        mirrored_gammas(),
        0.05,
        long,
        Box::new(move |s| boxed(Hamcmc::new(2, 1, hamcmc(tame(0.1), 3, 0.5, 0.5), s))),
    );
    add(
        SamplerKind::Hamcmc,
        regression(),
        0.12,
        long,
        Box::new(move |s| boxed(Hamcmc::new(2, 1, hamcmc(minibatch(0.03), 3, 0.01, 2.0), s))),
    );

    add(
        SamplerKind::Hamcmc,
        gaussian(),
        0.04,
        long,
        Box::new(move |s| boxed(Hamcmc::new(2, 1, seldom(hamcmc(constant(0.05), 3, 0.3, 0.0)), s))),
    );
    add(
        SamplerKind::Hamcmc,
        banana(),
        0.08,
        2 * long,
        Box::new(move |s| boxed(Hamcmc::new(2, 1, seldom(hamcmc(constant(0.1), 3, 0.04, 20.0)), s))),
    );

    let sghmc = |gradient| SghmcSettings { gradient, friction: 1.5 };
    add(
        SamplerKind::Sghmc,
        gaussian(),
        0.03,
        long,
        Box::new(move |s| boxed(Sghmc::new(2, 1, sghmc(constant(0.2)), s))),
    );
    add(
        SamplerKind::Sghmc,
        two_peaks(),
        0.03,
        long,
        Box::new(move |s| boxed(Sghmc::new(1, 1, sghmc(constant(0.15)), s))),
    );
    add(
        SamplerKind::Sghmc,
        banana(),
        0.05,
        2 * long,
        Box::new(move |s| boxed(Sghmc::new(2, 1, sghmc(constant(0.1)), s))),
    );
    add(
        SamplerKind::Sghmc,
        gammas(),
        0.03,
        long,
        Box::new(move |s| boxed(Sghmc::new(2, 1, sghmc(mirror(0.2)), s))),
    );

    let sgnht = |gradient| SgnhtSettings { gradient, diffusion: 1.5 };
    add(
        SamplerKind::Sgnht,
        gaussian(),
        0.03,
        long,
        Box::new(move |s| boxed(Sgnht::new(2, 1, sgnht(constant(0.2)), s))),
    );
    add(
        SamplerKind::Sgnht,
        two_peaks(),
        0.03,
        long,
        Box::new(move |s| boxed(Sgnht::new(1, 1, sgnht(constant(0.15)), s))),
    );
    add(
        SamplerKind::Sgnht,
        banana(),
        0.05,
        2 * long,
        Box::new(move |s| boxed(Sgnht::new(2, 1, sgnht(constant(0.1)), s))),
    );
    add(
        SamplerKind::Sgnht,
        regression(),
        0.1,
        2 * long,
        Box::new(move |s| {
            boxed(Sgnht::new(2, 1, SgnhtSettings { gradient: minibatch(0.02), diffusion: 20.0 }, s))
        }),
    );

    add(
        SamplerKind::Sgrhmc,
        gaussian(),
        0.05,
        long,
        Box::new(move |s| boxed(Sgrhmc::new(2, 1, constant(0.05), s))),
    );
    add(
        SamplerKind::Sgrhmc,
        two_peaks(),
        0.05,
        long,
        Box::new(move |s| boxed(Sgrhmc::new(1, 1, constant(0.03), s))),
    );
    add(
        SamplerKind::Sgrhmc,
        banana(),
        0.08,
        2 * long,
        Box::new(move |s| boxed(Sgrhmc::new(2, 1, constant(0.02), s))),
    );

    add(
        SamplerKind::Sgrhmc,
        one_peak(),
        0.05,
        long,
        Box::new(move |s| boxed(Sgrhmc::new(1, 1, constant(0.03), s))),
    );
    add(SamplerKind::Hmc, gaussian(), 0.0, short, Box::new(move |s| boxed(Hmc::new(2, 1, hmc(5), s))));
    add(SamplerKind::Hmc, two_peaks(), 0.0, short, Box::new(move |s| boxed(Hmc::new(1, 1, hmc(5), s))));
    add(SamplerKind::Hmc, banana(), 0.0, long, Box::new(move |s| boxed(Hmc::new(2, 1, hmc(8), s))));
    add(SamplerKind::Hmc, log_gammas(), 0.0, short, Box::new(move |s| boxed(Hmc::new(2, 1, hmc(5), s))));
    add(SamplerKind::Hmc, mirrored_gammas(), 0.0, short, Box::new(move |s| boxed(Hmc::new(2, 1, hmc(5), s))));

    let mh = || MhBfgsSettings { initial_scale: InitialScale::Pairs(0.3), ..MhBfgsSettings::default() };
    add(SamplerKind::MhBfgs, gaussian(), 0.0, long, Box::new(move |s| boxed(MhBfgs::new(2, 1, mh(), s))));
    add(SamplerKind::MhBfgs, two_peaks(), 0.0, long, Box::new(move |s| boxed(MhBfgs::new(1, 1, mh(), s))));
    add(SamplerKind::MhBfgs, banana(), 0.0, 2 * long, Box::new(move |s| boxed(MhBfgs::new(2, 1, mh(), s))));

    let bfgs = |leaps| HmcBfgsSettings {
        hmc: hmc(leaps),
        initial_scale: InitialScale::Fixed(0.3),
        ..HmcBfgsSettings::default()
    };
    add(
        SamplerKind::HmcBfgs,
        gaussian(),
        0.0,
        2 * short,
        Box::new(move |s| boxed(HmcBfgs::new(2, 1, bfgs(4), s))),
    );
    add(
        SamplerKind::HmcBfgs,
        two_peaks(),
        0.0,
        2 * short,
        Box::new(move |s| boxed(HmcBfgs::new(1, 1, bfgs(4), s))),
    );
    add(
        SamplerKind::HmcBfgs,
        banana(),
        0.0,
        2 * long,
        Box::new(move |s| boxed(HmcBfgs::new(2, 1, bfgs(6), s))),
    );

    let qnhmc = |leaps| QnhmcSettings { hmc: hmc(leaps), ..QnhmcSettings::default() };
    add(SamplerKind::Qnhmc, gaussian(), 0.0, short, Box::new(move |s| boxed(Qnhmc::new(2, 1, qnhmc(5), s))));
    add(SamplerKind::Qnhmc, two_peaks(), 0.0, short, Box::new(move |s| boxed(Qnhmc::new(1, 1, qnhmc(5), s))));
    add(SamplerKind::Qnhmc, banana(), 0.0, long / 2, Box::new(move |s| boxed(Qnhmc::new(2, 1, qnhmc(8), s))));

    let nuts = |dimension| move |s| boxed(Nuts::new(dimension, 1, NutsSettings::default(), s));
    add(SamplerKind::Nuts, gaussian(), 0.0, short, Box::new(nuts(2)));
    add(SamplerKind::Nuts, two_peaks(), 0.0, short, Box::new(nuts(1)));
    add(SamplerKind::Nuts, banana(), 0.0, long, Box::new(nuts(2)));

    add(SamplerKind::Newtonian, gaussian(), 0.0, short, Box::new(move |s| boxed(Newtonian::new(2, 1, s))));
    add(SamplerKind::Newtonian, gammas(), 0.0, short, Box::new(move |s| boxed(Newtonian::new(2, 1, s))));
    add(SamplerKind::Newtonian, dirichlet(), 0.0, short, Box::new(move |s| boxed(Newtonian::new(3, 1, s))));
    add(SamplerKind::Newtonian, funnel(), 0.0, 2 * long, Box::new(move |s| boxed(Newtonian::new(2, 1, s))));
    add(SamplerKind::Newtonian, two_peaks(), 0.0, long, Box::new(move |s| boxed(Newtonian::new(1, 1, s))));
    cases
}
