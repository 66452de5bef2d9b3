//! Every sampler on targets with known answers: the error of each expectation in units of its standard error.

#[path = "../tests/samplers/proof/mod.rs"]
mod proof;
mod shared;

use shared::{Outcome, Report, check_options, number};

fn main() -> Outcome {
    check_options(&[])?;
    let mut report = Report::new("sampler_table", "Samplers on targets with known answers");
    report.say(
        "Eight independent chains per row. Each quantity: its exact mean, and the error of the estimate in standard \
         errors (from the spread between chains) and, in brackets, in standard deviations of the target. Samplers \
         without an acceptance test have a bias that their step size explains; the last column is the bias that the \
         test suite forgives, in standard deviations. The samplers of the last column 0 are exact.",
    );
    let mut rows = Vec::new();
    for case in proof::cases() {
        let exact = case.tolerance == 0.0;
        let estimates = proof::estimate(&case.problem, &case.sampler, exact, case.steps);
        let errors: Vec<String> = case
            .problem
            .quantities
            .iter()
            .zip(&estimates)
            .map(|(quantity, estimate)| {
                let error = estimate.mean - quantity.mean;
                format!(
                    "{} = {}: {:+.1} ({:+.3})",
                    quantity.name,
                    number(quantity.mean),
                    error / estimate.error,
                    error / quantity.deviation
                )
            })
            .collect();
        rows.push(vec![
            case.kind.to_string(),
            case.problem.name.to_owned(),
            case.steps.1.to_string(),
            errors.join("; ").replace('|', "\\|"),
            number(case.tolerance),
        ]);
    }
    report.table(&["sampler", "target", "steps", "errors", "forgiven"], &rows);
    report.save()
}
