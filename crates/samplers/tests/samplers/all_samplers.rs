//! Errors, divergences, adaptation and chains of all samplers.

use crate::proof::constant;
use crate::proof::targets::assert_close;
use alphamf_samplers::random::SeedTree;
use alphamf_samplers::targets::*;
use alphamf_samplers::*;

#[test]
fn bad_settings_and_starts_are_typed_errors() {
    let streams = SeedTree::new(0);
    let setting = |result: Result<(), SamplerError>| matches!(result, Err(SamplerError::Setting { .. }));
    for step in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(setting(Sgld::<f64>::new(2, 1, constant(step), streams).map(drop)));
        let hmc = HmcSettings { step_size: step, ..HmcSettings::default() };
        assert!(setting(Hmc::<f64>::new(2, 1, hmc, streams).map(drop)));
    }
    for scale in [10.0, 0.1] {
        let step_size = StepSize::Decreasing { scale, power: 400.0 };
        let gradient = GradientSettings { step_size, ..GradientSettings::default() };
        assert!(setting(Sgld::<f64>::new(2, 1, gradient, streams).map(drop)), "{step_size:?}");
    }
    assert!(setting(Sgld::<f64>::new(0, 1, constant(0.1), streams).map(drop)));
    assert!(setting(Sgld::<f64>::new(1, 0, constant(0.1), streams).map(drop)));
    let gradient = GradientSettings { minibatch: Some(0), ..constant(0.1) };
    assert!(setting(Sgld::<f64>::new(1, 1, gradient, streams).map(drop)));
    for drift_limit in [0.0, -1.0, f64::NAN] {
        let gradient = GradientSettings { drift_limit, ..constant(0.1) };
        assert!(setting(Sgld::<f64>::new(1, 1, gradient, streams).map(drop)));
    }
    for temperature in [-1.0, f64::NAN, f64::INFINITY] {
        let gradient = GradientSettings { temperature, ..constant(0.1) };
        assert!(setting(Sgld::<f64>::new(1, 1, gradient, streams).map(drop)));
    }
    for (leaps, target_acceptance) in [(0, 0.8), (1, 0.0), (1, 1.0), (1, f64::NAN)] {
        let hmc = HmcSettings { leaps, target_acceptance, ..HmcSettings::default() };
        assert!(setting(Hmc::<f64>::new(2, 1, hmc, streams).map(drop)));
    }
    let memory = HamcmcSettings { memory: 1, ..HamcmcSettings::default() };
    assert!(setting(Hamcmc::<f64>::new(2, 1, memory, streams).map(drop)));
    let refresh_interval = HamcmcSettings { refresh_interval: 0, ..HamcmcSettings::default() };
    assert!(setting(Hamcmc::<f64>::new(2, 1, refresh_interval, streams).map(drop)));
    for gamma in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        for initial_scale in [InitialScale::Fixed(gamma), InitialScale::Pairs(gamma)] {
            let scale = HamcmcSettings { initial_scale, ..HamcmcSettings::default() };
            assert!(setting(Hamcmc::<f64>::new(2, 1, scale, streams).map(drop)));
        }
    }
    let ensemble = HmcBfgsSettings { ensemble: 1, ..HmcBfgsSettings::default() };
    assert!(setting(HmcBfgs::<f64>::new(2, 1, ensemble, streams).map(drop)));

    let mut target = Funnel { scale: 3.0 };
    let mut sampler = Hmc::<f64>::new(3, 1, HmcSettings::default(), streams).unwrap();
    let error = Chain::new(&mut target, &mut sampler, vec![0.0; 3]).err();
    assert!(matches!(error, Some(SamplerError::Shape { found: 2, expected: 3, .. })));
    let mut sampler = Sgrld::<f64>::new(2, 1, constant(0.1), streams).unwrap();
    let error = Chain::new(&mut target, &mut sampler, vec![0.0; 2]).err();
    assert!(matches!(error, Some(SamplerError::Capability { .. })));
    for (correction, dimension) in [(false, 2), (true, 2), (false, 3)] {
        let settings = PsgldSettings { correction, ..PsgldSettings::default() };
        let sampler = Psgld::<f64>::new(dimension, 1, settings, streams).unwrap();
        let law = from_fn(2, |_: &[f64], gradient: &mut [f64]| {
            gradient.fill(0.0);
            0.0
        });
        match Chain::new(law, sampler, vec![0.0; 2]).err() {
            None => assert!(!correction && dimension == 2),
            Some(SamplerError::Capability { .. }) => assert!(correction),
            error => assert!(matches!(error, Some(SamplerError::Shape { found: 2, expected: 3, .. }))),
        }
    }
    let mut sampler = Hmc::<f64>::new(2, 1, HmcSettings::default(), streams).unwrap();
    let error = Chain::new(&mut target, &mut sampler, vec![0.0; 1]).err();
    assert!(matches!(error, Some(SamplerError::Shape { found: 1, expected: 2, .. })));
    let error = Chain::new(&mut target, &mut sampler, vec![0.0, f64::NAN]).err();
    assert!(matches!(error, Some(SamplerError::Start { index: 1, .. })));
    let mut target = Gammas::new(vec![1.0, 1.0], vec![1.0, 1.0]).unwrap();
    let error = Chain::new(&mut target, &mut sampler, vec![1.0, -1.0]).err();
    assert!(matches!(error, Some(SamplerError::StartPotential { block: 0, .. })));
}

/// Samplers with interleaved chains report their number and the next one, other samplers one chain. Reports omit
/// quantities that a sampler does not have.
#[test]
fn samplers_say_which_chain_is_next() {
    for kind in SamplerKind::ALL {
        let mut sampler = kind.build::<f64>(2, 1, &SamplerOptions::default(), SeedTree::new(1)).unwrap();
        let expected = match kind {
            // Pairs of states need one chain more than pairs of moves.
            SamplerKind::Hamcmc => HamcmcSettings::default().memory + 1,
            SamplerKind::HmcBfgs => HmcBfgsSettings::default().ensemble,
            SamplerKind::MhBfgs => MhBfgsSettings::default().ensemble,
            _ => 1,
        };
        assert_eq!(sampler.chains(), expected, "{kind}");
        let mut target = Gammas::new(vec![3.0, 2.0], vec![2.0, 1.0]).unwrap();
        let mut theta = [1.0, 1.5];
        for step in 0..2 * expected {
            assert_eq!(sampler.next_chain(), step % expected, "{kind}");
            let step = sampler.step(&mut target, &mut theta);
            assert_eq!(step.pairs.is_some(), kind == SamplerKind::Hamcmc, "{kind}");
            assert_eq!(step.clipped.is_some(), kind == SamplerKind::Hamcmc, "{kind}");
        }
    }
}

/// A matrix must be symmetric to 1e-9 of the largest entry, and its eigenvalues non-negative but for rounding.
#[test]
fn matrices_are_validated() {
    let sgld = |values: [f64; 4]| {
        let sampler = Sgld::<f64>::new(2, 1, constant(0.1), SeedTree::new(1)).unwrap();
        sampler.with_gradient_noise(&Matrix::Dense(values.to_vec())).map(drop)
    };
    for scale in [1e-6, 1.0, 1e6] {
        let of = |values: [f64; 4]| sgld(values.map(|value| scale * value));
        assert_eq!(of([2.0, 1.0, 1.0 + 1e-10, 2.0]), Ok(()));
        let Err(SamplerError::Matrix { value, .. }) = of([2.0, 1.0, 1.001, 2.0]) else { panic!("{scale}") };
        assert!((value.abs() / scale - 1e-3).abs() < 1e-9, "{value}");
        // Singular, and a thousandth below.
        assert_eq!(of([1.0; 4]), Ok(()));
        assert!(matches!(of([1.0, 1.001, 1.001, 1.0]), Err(SamplerError::Matrix { .. })));
    }
    // At each of the three off-diagonal positions.
    for (low, high) in [(1, 3), (2, 6), (5, 7)] {
        let mut values = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
        (values[low], values[high]) = (0.1, 0.2);
        let sampler = Sgld::<f64>::new(3, 1, constant(0.1), SeedTree::new(1)).unwrap();
        let refused = sampler.with_gradient_noise(&Matrix::Dense(values.to_vec())).err();
        assert!(matches!(refused, Some(SamplerError::Matrix { expected: "symmetric", .. })), "{refused:?}");
    }
    for none in [f64::NAN, f64::INFINITY] {
        assert!(matches!(sgld([1.0, none, none, 1.0]), Err(SamplerError::Matrix { .. })));
        assert!(matches!(sgld([none, 0.0, 0.0, 1.0]), Err(SamplerError::Matrix { .. })));
    }
}

#[test]
fn numbers_and_names_are_what_they_are() {
    assert_eq!(([1.5_f32.widen(), f32::narrow(1.5).into()], 1.5_f64.widen()), ([1.5; 2], 1.5));
    for kind in SamplerKind::ALL {
        assert_eq!(kind.to_string(), kind.name());
    }
}

#[test]
fn folded_states_and_chosen_terms_can_be_looked_at() {
    let mut state = [-1.0, 2.0, -0.0];
    Mirrored::<Gammas, f64>::fold(&mut state);
    assert_eq!(state, [1.0, 2.0, 0.0]);
    assert_eq!(Minibatch::subsample(&[3, 1, 3], 7).indices(), Some(&[3, 1, 3][..]));
    assert_eq!(Minibatch::full(7).indices(), None);
}

#[test]
fn every_name_builds_its_sampler() {
    for kind in SamplerKind::ALL {
        assert_eq!(kind.name().parse::<SamplerKind>().unwrap(), kind);
        kind.build::<f32>(3, 2, &SamplerOptions::default(), SeedTree::new(0)).unwrap();
        let step_size = Some(StepSize::Constant(-1.0));
        let options = SamplerOptions { step_size, ..SamplerOptions::default() };
        // Newtonian Monte Carlo has no step.
        assert_eq!(
            kind.build::<f32>(3, 2, &options, SeedTree::new(0)).is_ok(),
            kind == SamplerKind::Newtonian
        );
    }
    let error = "gibbs".parse::<SamplerKind>().unwrap_err();
    assert!(error.to_string().contains("hmc-bfgs"));
}

/// A target whose gradient explodes: every sampler must count divergences and keep its draws finite.
struct Cliff;

impl Target<f64> for Cliff {
    fn dimension(&self) -> usize {
        1
    }

    fn gradient(&mut self, theta: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        gradient[0] = if theta[0].abs() > 1.5 { f64::NAN } else { 1e200 * theta[0].powi(5) };
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        potential[0] = if theta[0].abs() > 1.5 { f64::NAN } else { 1e200 * theta[0].powi(6) / 6.0 };
    }
}

#[test]
fn divergences_are_counted_and_never_reach_the_draws() {
    for kind in SamplerKind::ALL {
        let mut sampler = kind.build::<f64>(1, 1, &SamplerOptions::default(), SeedTree::new(1)).unwrap();
        if sampler.check(&mut Cliff).is_err() {
            continue;
        }
        let mut target = Cliff;
        let mut chain = Chain::new(&mut target, &mut *sampler, vec![1.0]).unwrap();
        // HAMCMC evaluates the gradient at the end of a move before it accepts the move.
        let furthest = if kind == SamplerKind::Hamcmc { 1.5 } else { f64::MAX };
        chain.run(200, |draw| assert!(draw.theta[0].abs() <= furthest, "{kind}"));
        assert!(chain.statistics().divergences > 0, "{kind}");
    }
}

/// A test rejects every move to a NaN potential, however smooth the gradient there.
#[test]
fn tested_moves_never_end_without_a_potential() {
    let options = SamplerOptions { step_size: Some(StepSize::Constant(0.5)), ..SamplerOptions::default() };
    for kind in
        [SamplerKind::Hmc, SamplerKind::MhBfgs, SamplerKind::HmcBfgs, SamplerKind::Qnhmc, SamplerKind::Nuts]
    {
        let sampler = kind.build::<f64>(1, 1, &options, SeedTree::new(1)).unwrap();
        let target = from_fn(1, |theta: &[f64], gradient: &mut [f64]| {
            gradient[0] = theta[0];
            if theta[0].abs() > 1.0 { f64::NAN } else { 0.5 * theta[0] * theta[0] }
        });
        let mut chain = Chain::new(target, sampler, vec![0.5]).unwrap();
        chain.run(500, |draw| assert!(draw.step.tested && draw.theta[0].abs() <= 1.0, "{kind}"));
        assert!(chain.statistics().divergences > 10, "{kind}");
    }
}

/// A step reports how many blocks were reverted, and reverts these: one of four overflows here.
#[test]
fn acceptance_is_the_share_of_blocks_that_stay() {
    let (streams, gradient) = (SeedTree::new(1), constant(0.1));
    let sghmc = SghmcSettings { gradient, ..SghmcSettings::default() };
    let sgnht = SgnhtSettings { gradient, ..SgnhtSettings::default() };
    let psgld = PsgldSettings { gradient, ..PsgldSettings::default() };
    let hmc = HmcSettings::default();
    let samplers: [(&str, Box<dyn Sampler<f64>>); 11] = [
        ("SGLD", Box::new(Sgld::new(2, 4, gradient, streams).unwrap())),
        ("PSGLD", Box::new(Psgld::new(2, 4, psgld, streams).unwrap())),
        ("SGRLD", Box::new(Sgrld::new(2, 4, gradient, streams).unwrap())),
        ("SGHMC", Box::new(Sghmc::new(2, 4, sghmc, streams).unwrap())),
        ("SGNHT", Box::new(Sgnht::new(2, 4, sgnht, streams).unwrap())),
        ("SGRHMC", Box::new(Sgrhmc::new(2, 4, gradient, streams).unwrap())),
        ("HMC", Box::new(Hmc::new(2, 4, hmc, streams).unwrap())),
        ("HMC-BFGS", Box::new(HmcBfgs::new(2, 4, HmcBfgsSettings::default(), streams).unwrap())),
        ("MH-BFGS", Box::new(MhBfgs::new(2, 4, MhBfgsSettings::default(), streams).unwrap())),
        ("RMHMC", Box::new(Rmhmc::new(2, 4, hmc, streams).unwrap())),
        ("NUTS", Box::new(Nuts::new(2, 4, NutsSettings::default(), streams).unwrap())),
    ];
    for (name, mut sampler) in samplers {
        let mut target = Gaussian::equicorrelated(2, 1.0, 0.0).with_blocks(4);
        let mut theta = [0.1, 0.1, 0.2, 0.2, 1e308, 1e307, 0.4, 0.4];
        let step = sampler.step(&mut target, &mut theta);
        assert_eq!((step.divergences, &theta[4..6]), (1, &[1e308, 1e307][..]), "{name}");
        assert!(theta.iter().enumerate().all(|(i, x)| i / 2 == 2 || x.abs() < 10.0), "{name}: {theta:?}");
        assert!(step.potential.is_some() || step.acceptance == 0.75, "{name}: {step:?}");
    }
}

/// Where the step is far too long, a block may run away and have its next move reverted, both in the report of one
/// step.
#[test]
fn a_block_diverges_at_most_once_in_a_step() {
    let (streams, gradient) = (SeedTree::new(1), constant(1.0));
    let sghmc = SghmcSettings { gradient, ..SghmcSettings::default() };
    let sgnht = SgnhtSettings { gradient, ..SgnhtSettings::default() };
    let samplers: [(&str, Box<dyn Sampler<f64>>); 3] = [
        ("SGLD", Box::new(Sgld::new(1, 2, gradient, streams).unwrap())),
        ("SGHMC", Box::new(Sghmc::new(1, 2, sghmc, streams).unwrap())),
        ("SGNHT", Box::new(Sgnht::new(1, 2, sgnht, streams).unwrap())),
    ];
    for (name, sampler) in samplers {
        let target = Gaussian::equicorrelated(1, 1e-9, 0.0).with_blocks(2);
        let mut chain = Chain::new(target, sampler, vec![1.0, 1e-6]).unwrap();
        chain.run(200, |draw| assert!(draw.step.divergences <= 2, "{name}: {:?}", draw.step));
        assert!(chain.statistics().divergences > 200, "{name}: {:?}", chain.statistics());
    }
}

/// Samplers that accept or reject and adapt their step, of two unknowns a block; MH-BFGS proposes at a scale.
fn accept_reject(blocks: usize, hmc: HmcSettings, scale: f64) -> [(&'static str, Box<dyn Sampler<f64>>); 6] {
    let streams = SeedTree::new(1);
    let bfgs = HmcBfgsSettings { hmc, ..HmcBfgsSettings::default() };
    let qnhmc = QnhmcSettings { hmc, ..QnhmcSettings::default() };
    let nuts = NutsSettings { step_size: hmc.step_size, ..NutsSettings::default() };
    let mh_bfgs = MhBfgsSettings { scale, ..MhBfgsSettings::default() };
    [
        ("HMC", Box::new(Hmc::new(2, blocks, hmc, streams).unwrap())),
        ("HMC-BFGS", Box::new(HmcBfgs::new(2, blocks, bfgs, streams).unwrap())),
        ("QNHMC", Box::new(Qnhmc::new(2, blocks, qnhmc, streams).unwrap())),
        ("RMHMC", Box::new(Rmhmc::new(2, blocks, hmc, streams).unwrap())),
        ("NUTS", Box::new(Nuts::new(2, blocks, nuts, streams).unwrap())),
        ("MH-BFGS", Box::new(MhBfgs::new(2, blocks, mh_bfgs, streams).unwrap())),
    ]
}

/// The reported acceptance and step size are means over the blocks.
#[test]
fn accept_reject_samplers_speak_of_the_mean_of_their_blocks() {
    let hmc = HmcSettings { step_size: 0.01, ..HmcSettings::default() };
    let newtonian: Box<dyn Sampler<f64>> = Box::new(Newtonian::new(2, 4, SeedTree::new(1)).unwrap());
    let samplers = accept_reject(4, hmc, MhBfgsSettings::default().scale);
    for (name, mut sampler) in samplers.into_iter().chain([("NMC", newtonian)]) {
        let mut target = Gaussian::equicorrelated(2, 1.0, 0.0).with_blocks(4);
        let step = sampler.step(&mut target, &mut [0.5; 8]);
        // MH-BFGS proposes from far away; NMC has no step, and makes some local proposals.
        let (acceptance, step_size) = match name {
            "MH-BFGS" => (0.05..=0.99, 1.0..=1.0),
            "NMC" => (0.5..=1.0, 0.0..=0.0),
            _ => (0.99..=1.0, 0.009..=0.01),
        };
        assert!(acceptance.contains(&step.acceptance), "{name}: {step:?}");
        assert!(step_size.contains(&step.step_size), "{name}: {step:?}");
    }
}

/// Steps are found while a chain burns in, and neither before nor after it.
#[test]
fn steps_are_adapted_in_burn_in_only() {
    let hmc = HmcSettings { step_size: 1e-4, jitter: 0.0, ..HmcSettings::default() };
    for (name, sampler) in accept_reject(1, hmc, 1e-4) {
        let mut chain = Chain::new(Gaussian::equicorrelated(2, 1.0, 0.0), sampler, vec![0.5; 2]).unwrap();
        let steps = |chain: &mut Chain<f64, Gaussian, Box<dyn Sampler<f64>>>| {
            let mut steps = Vec::new();
            chain.run(3, |draw| steps.push(draw.step.step_size));
            steps
        };
        assert_eq!(steps(&mut chain), [1e-4; 3], "{name}");
        // Off already.
        chain.adapt(false);
        assert_eq!(steps(&mut chain), [1e-4; 3], "{name}");
        chain.adapt(true);
        chain.run(300, |_| ());
        chain.adapt(false);
        let adapted = steps(&mut chain);
        assert!(adapted[0] > 1e-2 && adapted[1..] == [adapted[0]; 2], "{name}: {adapted:?}");
    }
}

/// The memory is used from burn-in on, and earlier only with `adapt_after_burn_in`.
#[test]
fn qnhmc_updates_memory_only_when_enabled() {
    let run_for = |adapt_after_burn_in, memory, burn_in, updates| {
        let settings = QnhmcSettings { adapt_after_burn_in, memory, updates, ..QnhmcSettings::default() };
        let sampler = Qnhmc::new(3, 1, settings, SeedTree::new(2)).unwrap();
        let mut chain = Chain::new(Gaussian::equicorrelated(3, 4.0, 1.0), sampler, vec![0.5; 3]).unwrap();
        chain.burn_in(burn_in);
        chain.run(20, |_| ());
        chain.state().to_vec()
    };
    let run = |adapt_after_burn_in, memory, burn_in| run_for(adapt_after_burn_in, memory, burn_in, 100);
    assert_eq!(run(false, 1, 0), run(false, 5, 0));
    assert_ne!(run(false, 1, 20), run(false, 5, 20));
    assert_ne!(run(true, 1, 0), run(true, 5, 0));
    // No more updates than the setting allows.
    assert_eq!(run_for(false, 3, 20, 3), run_for(false, 5, 20, 3));
    assert_ne!(run_for(false, 3, 20, 3), run_for(false, 3, 20, 10));
}

/// A normal law by a closure, and how often that was called.
fn normal_law(calls: &std::cell::Cell<usize>) -> impl Target<f64> {
    from_fn(2, |theta: &[f64], gradient: &mut [f64]| {
        calls.set(calls.get() + 1);
        gradient.copy_from_slice(&[2.0 * (theta[0] - 1.0), theta[1]]);
        (theta[0] - 1.0).powi(2) + 0.5 * theta[1].powi(2)
    })
}

#[test]
fn a_closure_is_a_target_and_is_called_once_for_both() {
    let calls = std::cell::Cell::new(0);
    let settings = HmcSettings { leaps: 3, ..HmcSettings::default() };
    let draw = |target: &mut dyn Target<f64>| {
        let sampler = Hmc::new(2, 1, settings, SeedTree::new(3)).unwrap();
        let mut chain = Chain::new(target, sampler, vec![0.0; 2]).unwrap();
        chain.run(5, |_| ());
        chain.state().to_vec()
    };
    let by_closure = draw(&mut normal_law(&calls));
    // The start's potential; then, of every trajectory, its start and its leaps.
    assert_eq!(calls.get(), 1 + 5 * (1 + 3));
    let known = Gaussian::new(vec![1.0, 0.0], vec![2.0, 0.0, 0.0, 1.0]).unwrap();
    assert_close("closure", &by_closure, &draw(&mut known.clone()), 1e-12);
    assert_eq!(draw(&mut Box::new(known.clone())), draw(&mut known.clone()));
}

/// Where potential and gradient are computed together, a closure is called at the end of a move alone, or at its start,
/// too.
#[test]
fn fixed_targets_are_not_evaluated_twice() {
    let calls = std::cell::Cell::new(0);
    let count = |sampler: Box<dyn Sampler<f64>>| {
        let mut target = normal_law(&calls);
        let mut chain = Chain::new(&mut target, sampler, vec![0.0; 2]).unwrap();
        chain.run(20, |_| ());
        let before = calls.get();
        chain.run(100, |_| ());
        calls.get() - before
    };
    let mh_bfgs = MhBfgs::new(2, 1, MhBfgsSettings::default(), SeedTree::new(3)).unwrap();
    assert_eq!(count(Box::new(mh_bfgs)), 100);
    let hamcmc = Hamcmc::new(2, 1, HamcmcSettings::default(), SeedTree::new(3)).unwrap();
    let hamcmc = hamcmc.with_pairs(Pairs::States).unwrap().with_metropolis().unwrap();
    assert_eq!(count(Box::new(hamcmc)), 300);
}

#[test]
fn a_chain_can_be_kept() {
    struct Study {
        chain: Chain<f64, Gaussian, Box<dyn Sampler<f64>>>,
    }
    let sampler = SamplerKind::Sgld.build(2, 1, &SamplerOptions::default(), SeedTree::new(1)).unwrap();
    let target = Gaussian::equicorrelated(2, 4.0, 1.0);
    let mut study = Study { chain: Chain::new(target, sampler, vec![0.0; 2]).unwrap() };
    study.chain.run(3, |_| ());
    assert_eq!(study.chain.statistics().steps, 3);
    assert_eq!(Target::<f64>::dimension(study.chain.target()), 2);
    fn moves_to_a_thread<T: Send>(_: &T) {}
    moves_to_a_thread(&study.chain);
}

#[test]
fn chains_from_several_starts_tell_whether_they_agree() {
    let starts = [vec![-3.0, 2.0], vec![3.0, 2.0], vec![-3.0, -2.0], vec![3.0, -2.0]];
    let schedule = Schedule { burn_in: 200, draws: 500 };
    let target = Gaussian::new(vec![1.0, -0.5], vec![2.0, 1.2, 1.2, 1.5]).unwrap();
    let (seeds, hmc) = (SeedTree::new(5), |streams| Hmc::new(2, 1, HmcSettings::default(), streams));
    let sampled = sample(&target, &starts, schedule, seeds, hmc).unwrap();
    assert!(sampled.max_r_hat() < 1.02, "{:?}", sampled.parameters);
    assert!(sampled.min_effective_size() > 400.0, "{:?}", sampled.parameters);
    let covariance = target.covariance();
    for (i, unknown) in sampled.parameters.iter().enumerate() {
        assert!((unknown.mean - target.mean()[i]).abs() < 4.0 * unknown.standard_error, "{unknown:?}");
        assert!((unknown.deviation / covariance[3 * i].sqrt() - 1.0).abs() < 0.1, "{unknown:?}");
        let traces = sampled.traces(i);
        assert_eq!((traces.len(), traces[3].len()), (4, 500));
        assert_eq!(unknown.r_hat, diagnostics::rank_r_hat(&traces));
        assert_eq!(unknown.effective_size, diagnostics::effective_size_bulk(&traces));
        assert!(traces[1].iter().zip(sampled.draws(1)).all(|(trace, draw)| *trace == draw[i]));
    }
    assert!(sampled.statistics.iter().all(|statistics| statistics.steps == 500));
    // Chains have seeds of their own.
    let together = sample(&target, &vec![starts[0].clone(); 2], schedule, seeds, hmc).unwrap();
    assert_ne!(together.draws(0).last(), together.draws(1).last());
    // Each is the chain that runs alone, on any number of threads.
    let mut alone = Chain::new(target.clone(), hmc(seeds.child(2)).unwrap(), starts[2].clone()).unwrap();
    alone.burn_in(200);
    alone.run(500, |_| ());
    assert_eq!(sampled.draws(2).last(), Some(alone.state()));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(pool.install(|| sample(&target, &starts, schedule, seeds, hmc)), Ok(sampled));
    // Two peaks that no chain leaves.
    let peaks = from_fn(1, |theta: &[f64], gradient: &mut [f64]| {
        let x = theta[0];
        gradient[0] = 40.0 * x * (x * x - 1.0);
        10.0 * (x * x - 1.0).powi(2)
    });
    let (seeds, hmc) = (SeedTree::new(6), |streams| Hmc::new(1, 1, HmcSettings::default(), streams));
    let apart = sample(&peaks, &[vec![-1.0], vec![1.0]], schedule, seeds, hmc).unwrap();
    assert!(apart.max_r_hat() > 1.5 && apart.min_effective_size() < 20.0, "{:?}", apart.parameters);
    // The worst parameter is not the last one. A constant parameter cannot be checked, so neither can the maximum over
    // all.
    let first = from_fn(2, |theta: &[f64], gradient: &mut [f64]| {
        let [x, y] = [theta[0], theta[1]];
        gradient.copy_from_slice(&[40.0 * x * (x * x - 1.0), y]);
        10.0 * (x * x - 1.0).powi(2) + 0.5 * y * y
    });
    let pair = |streams| Hmc::new(2, 1, HmcSettings::default(), streams);
    let mixed = sample(&first, &[vec![-1.0, 0.0], vec![1.0, 0.0]], schedule, seeds, pair).unwrap();
    assert_eq!(mixed.max_r_hat(), mixed.parameters[0].r_hat);
    assert!(mixed.parameters[1].r_hat < 1.1, "{:?}", mixed.parameters);
    let mut judged = mixed.clone();
    judged.parameters[0].r_hat = f64::NAN;
    assert!(judged.max_r_hat().is_nan());
    // Too few starts or draws, and an invalid start, are errors.
    let refused = |starts: &[Vec<f64>], draws| {
        sample(&peaks, starts, Schedule { burn_in: 0, draws }, seeds, hmc)
            .err()
            .map(|error| error.to_string())
    };
    assert!(refused(&[], 10).is_some_and(|error| error.contains("starts is 0; expected at least 1")));
    assert!(
        refused(&[vec![1.0]], 3)
            .is_some_and(|error| error.contains("draws of each chain is 3; expected at least 4"))
    );
    assert!(refused(&[vec![1.0], vec![f64::NAN]], 10).is_some_and(|error| error.contains("start[0] is")));
}

/// The report of a step: the potential and the energy at its end, moved or not, and a step size within the jitter.
#[test]
fn steps_report_where_they_end_and_how_far_they_went() {
    let mut target = Gaussian::equicorrelated(3, 4.0, 1.0);
    let hmc = HmcSettings { step_size: 3.0, leaps: 3, jitter: 0.5, ..HmcSettings::default() };
    let bfgs = HmcBfgsSettings { hmc, ensemble: 3, initial_scale: InitialScale::Fixed(0.3) };
    let samplers: [(&str, Box<dyn Sampler<f64>>); 5] = [
        ("HMC", Box::new(Hmc::new(3, 1, hmc, SeedTree::new(3)).unwrap())),
        ("HMC-BFGS", Box::new(HmcBfgs::new(3, 1, bfgs, SeedTree::new(3)).unwrap())),
        (
            "RMHMC",
            Box::new(Rmhmc::new(3, 1, HmcSettings { step_size: 1.5, ..hmc }, SeedTree::new(3)).unwrap()),
        ),
        ("MH-BFGS", Box::new(MhBfgs::new(3, 1, MhBfgsSettings::default(), SeedTree::new(3)).unwrap())),
        (
            "NUTS",
            Box::new(
                Nuts::new(3, 1, NutsSettings { step_size: 3.0, ..NutsSettings::default() }, SeedTree::new(3))
                    .unwrap(),
            ),
        ),
    ];
    for (name, mut sampler) in samplers {
        let (mut theta, mut moves) = (vec![1.0; 3], 0);
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for _ in 0..200 {
            let start = sampler.next_start(&theta).to_vec();
            let step = sampler.step(&mut target, &mut theta);
            let mut potential = [0.0];
            Target::<f64>::potential(&mut target, &theta, &mut potential);
            assert!((step.potential.unwrap() - potential[0]).abs() < 1e-9, "{name}: {step:?}, {potential:?}");
            // The kinetic energy of a momentum of three numbers; for RMHMC plus half a log determinant.
            let kinetic = step.energy.map_or(0.0, |energy| energy - potential[0]);
            assert!((-5.0..20.0).contains(&kinetic), "{name}: {step:?}");
            moves += usize::from(start != theta);
            (least, most) = (least.min(step.step_size), most.max(step.step_size));
        }
        // Both accepted and rejected steps occur.
        assert!((10..200).contains(&moves), "{name}: {moves}");
        let jitters = ["HMC", "HMC-BFGS", "RMHMC"].contains(&name);
        let largest = if name == "RMHMC" { 1.5 } else { 3.0 };
        assert!(!jitters || most <= largest && most > 0.95 * largest, "{name}: {most}");
        assert!(!jitters || least >= 0.5 * largest && least < 0.55 * largest, "{name}: {least}");
    }
}

/// An energy error of a thousand nats is a divergence even if all numbers are finite.
#[test]
fn great_losses_of_energy_are_divergences() {
    for (step, diverges) in [(1.0, false), (1e4, true)] {
        let settings = HmcSettings { step_size: step, leaps: 1, ..HmcSettings::default() };
        let samplers: [Box<dyn Sampler<f64>>; 2] = [
            Box::new(Hmc::new(1, 1, settings, SeedTree::new(1)).unwrap()),
            Box::new(Rmhmc::new(1, 1, settings, SeedTree::new(1)).unwrap()),
        ];
        for sampler in samplers {
            let mut chain = Chain::new(Gaussian::equicorrelated(1, 1.0, 0.0), sampler, vec![0.0]).unwrap();
            chain.run(20, |_| ());
            assert_eq!(chain.statistics().divergences > 0, diverges);
        }
        let settings = MhBfgsSettings { scale: step, ..MhBfgsSettings::default() };
        let sampler = MhBfgs::new(1, 1, settings, SeedTree::new(1)).unwrap();
        let mut chain = Chain::new(Gaussian::equicorrelated(1, 1.0, 0.0), sampler, vec![0.1]).unwrap();
        chain.run(20, |_| ());
        assert_eq!(chain.statistics().divergences > 0, diverges, "MH-BFGS at {step}");
    }
    // The curvature of `x^4` near zero fits a law that is far too wide: without a step, an ordinary rejection.
    let starts = [vec![1e-3], vec![-1e-3]];
    let stuck = sample(
        &Quartic::new(1.0, 0.0),
        &starts,
        Schedule { burn_in: 0, draws: 20 },
        SeedTree::new(1),
        |streams| Newtonian::<f64>::new(1, 1, streams)?.with_local_fraction(0.0),
    )
    .unwrap();
    assert!(stuck.statistics.iter().all(|statistics| statistics.divergences == 0));
    assert!(stuck.warnings().iter().any(|warning| matches!(warning, diagnostics::Warning::RHat { .. })));
}

/// A sampler that has run on another target keeps nothing of it in a new chain, not even at the state where it stopped.
#[test]
fn a_new_chain_forgets_the_target_before() {
    let weak = from_fn(1, |theta: &[f64], gradient: &mut [f64]| {
        gradient[0] = 0.1 * theta[0];
        0.05 * theta[0] * theta[0]
    });
    let strong = from_fn(1, |theta: &[f64], gradient: &mut [f64]| {
        gradient[0] = theta[0];
        0.5 * theta[0] * theta[0]
    });
    // The energy, or the start of the next step, is that of the new chain.
    let mut nuts = Nuts::new(1, 1, NutsSettings::default(), SeedTree::new(1)).unwrap();
    let mut first = Chain::new(weak.clone(), &mut nuts, vec![3.0]).unwrap();
    first.run(5, |_| ());
    let state = first.state().to_vec();
    let mut second = Chain::new(strong.clone(), &mut nuts, state.clone()).unwrap();
    second.run(1, |_| ());
    let gradient = second.sampler().start().unwrap().gradient;
    assert_eq!(gradient, &state[..]);
    for kind in [SamplerKind::Hamcmc, SamplerKind::HmcBfgs, SamplerKind::MhBfgs, SamplerKind::Nuts] {
        for warms_up in [false, true] {
            let mut sampler = kind.build::<f64>(1, 1, &SamplerOptions::default(), SeedTree::new(2)).unwrap();
            let mut first = Chain::new(weak.clone(), &mut sampler, vec![3.0]).unwrap();
            if warms_up {
                first.burn_in(50);
            }
            first.run(7, |_| ());
            let mut second = Chain::new(strong.clone(), &mut sampler, vec![50.0]).unwrap();
            for _ in 0..second.sampler().chains() {
                let start = second.sampler().next_start(&[50.0])[0];
                assert!((start - 50.0).abs() < 1e-9, "{kind}, {warms_up}: starts at {start}");
                second.run(1, |_| ());
            }
        }
    }
}

/// Drifts of 0.5 and more are cut to the limit in either direction; noise is not.
#[test]
fn drifts_are_cut_to_their_limit() {
    let streams = SeedTree::new(1);
    let mut target = Gaussian::new(vec![0.0; 2], vec![100.0, 0.0, 0.0, 100.0]).unwrap();
    let start = [3.0, -2.0];
    for temperature in [0.0, 1.0] {
        let settings = GradientSettings { drift_limit: 0.25, temperature, ..constant(0.5) };
        let psgld = PsgldSettings { gradient: settings, ..PsgldSettings::default() };
        let hamcmc = HamcmcSettings { gradient: settings, ..HamcmcSettings::default() };
        let recipe = recipe::RecipeSampler::new(2, recipe::Langevin, settings, streams).unwrap();
        let sgld = || Sgld::new(2, 1, settings, streams).unwrap();
        let samplers: [(&str, Box<dyn Sampler<f64>>); 6] = [
            ("SGLD", Box::new(sgld())),
            ("SGLD with D", Box::new(sgld().with_diffusion(&Matrix::Scalar(2.0)).unwrap())),
            ("PSGLD", Box::new(Psgld::new(2, 1, psgld, streams).unwrap())),
            ("SGRLD", Box::new(Sgrld::new(2, 1, settings, streams).unwrap())),
            ("HAMCMC", Box::new(Hamcmc::new(2, 1, hamcmc, streams).unwrap())),
            ("a recipe", Box::new(recipe)),
        ];
        for (name, mut sampler) in samplers {
            let mut theta = start;
            sampler.step(&mut target, &mut theta);
            let moved = [theta[0] - start[0], theta[1] - start[1]];
            let is_cut = (moved[0] + 0.25).abs() < 1e-9 && (moved[1] - 0.25).abs() < 1e-9;
            assert_eq!(is_cut, temperature == 0.0, "{name} at {temperature}: {moved:?}");
        }
    }
}
