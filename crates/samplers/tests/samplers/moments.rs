//! Every sampler on at least three targets with known answers.

use crate::proof;
use std::time::Instant;

#[test]
fn every_sampler_finds_the_known_moments() {
    let mut failures = Vec::new();
    for case in proof::cases() {
        let start = Instant::now();
        let estimates = proof::estimate(&case.problem, &case.sampler, case.tolerance == 0.0, case.steps);
        let (errors, precision) = proof::worst(&case.problem, &estimates, case.tolerance);
        let line = format!(
            "{} on {}: {errors:.1} standard errors beyond {} deviations, precision {precision:.3}, {:.1} s",
            case.kind,
            case.problem.name,
            case.tolerance,
            start.elapsed().as_secs_f64()
        );
        println!("{line}");
        if !(errors < 5.0 && precision < 0.05) {
            for (quantity, estimate) in case.problem.quantities.iter().zip(&estimates) {
                println!(
                    "    {}: {estimate:?}, true {} sd {}",
                    quantity.name, quantity.mean, quantity.deviation
                );
            }
            failures.push(line);
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}
