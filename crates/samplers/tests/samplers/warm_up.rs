//! The warm-up: default settings on targets of any scale.

use alphamf_samplers::diagnostics::Warning;
use alphamf_samplers::random::SeedTree;
use alphamf_samplers::*;

/// A Gaussian of unlike deviations, coordinates in pairs of correlation 0.8.
fn scaled(scales: &'static [f64]) -> FromFn<f64, impl FnMut(&[f64], &mut [f64]) -> f64 + Clone> {
    from_fn(scales.len(), move |theta: &[f64], gradient: &mut [f64]| {
        const RHO: f64 = 0.8;
        let mut potential = 0.0;
        for (k, scales) in scales.chunks_exact(2).enumerate() {
            let x = [theta[2 * k] / scales[0] - 1.0, theta[2 * k + 1] / scales[1] - 2.0];
            let weight = 1.0 / (1.0 - RHO * RHO);
            potential += 0.5 * weight * (x[0] * x[0] + x[1] * x[1] - 2.0 * RHO * x[0] * x[1]);
            gradient[2 * k] = weight * (x[0] - RHO * x[1]) / scales[0];
            gradient[2 * k + 1] = weight * (x[1] - RHO * x[0]) / scales[1];
        }
        potential
    })
}

const SCALES: [f64; 6] = [1e-4, 1e4, 1.0, 300.0, 0.02, 5.0];

#[test]
fn default_settings_fit_targets_of_any_scale() {
    let target = scaled(&SCALES);
    let starts: Vec<Vec<f64>> = [-1.0, -0.3, 0.4, 1.0]
        .map(|x| SCALES.iter().enumerate().map(|(k, s)| s * (1.0 + (k % 2) as f64 + x)).collect())
        .to_vec();
    for kind in SamplerKind::ALL {
        if matches!(kind, SamplerKind::Sgrld | SamplerKind::Sgrhmc | SamplerKind::Newtonian) {
            continue;
        }
        let options = SamplerOptions { pairs: Some(Pairs::States), ..SamplerOptions::default() };
        // Samplers without a test take short steps.
        let draws = match kind {
            SamplerKind::Sgld | SamplerKind::Psgld | SamplerKind::Sghmc | SamplerKind::Sgnht => 10_000,
            SamplerKind::Hamcmc => 10_000,
            _ => 2000,
        };
        let result = sample(&target, &starts, Schedule { burn_in: 1500, draws }, |chain| {
            kind.build::<f64>(6, 1, &options, SeedTree::new(3).child(chain as u64))
        })
        .unwrap();
        let tested = result.runs().all(|run| run.steps().iter().all(|step| step.energy.is_some()));
        // Steps that are not tested bias deviations by some percent, and those of PSGLD by more.
        let (bound, least) = match kind {
            SamplerKind::Psgld => (0.5, 10.0),
            _ if tested => (0.08, 300.0),
            _ => (0.2, 30.0),
        };
        for (k, parameter) in result.parameters.iter().enumerate() {
            let mean = SCALES[k] * if k % 2 == 0 { 1.0 } else { 2.0 };
            let error = (parameter.mean - mean) / parameter.standard_error;
            assert!(error.abs() < 5.0, "{kind}: mean {k} is off by {error} standard errors");
            let ratio = parameter.deviation / SCALES[k];
            assert!((ratio - 1.0).abs() < bound, "{kind}: deviation {k} is {ratio} of its own");
        }
        assert!(result.min_effective_size() > least, "{kind}: {:?}", result.parameters);
        let serious =
            |warning: &Warning| matches!(warning, Warning::Divergences { .. } | Warning::Bias { .. });
        assert!(
            kind == SamplerKind::Psgld || !result.warnings().iter().any(serious),
            "{kind}: {:?}",
            result.warnings()
        );
        if tested {
            assert!(result.max_r_hat() < 1.02, "{kind}: {}", result.max_r_hat());
        }
    }
}
