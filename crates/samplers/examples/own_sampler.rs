//! A new sampler in ten lines: Langevin dynamics with a constant curl matrix `Q`, which preserve the stationary
//! distribution and mix faster than with `Q = 0` (`complete-recipe` section 2 allows any `D` and `Q`).

use alphamf_samplers::random::SeedTree;
use alphamf_samplers::recipe::{Langevin, Recipe, RecipeSampler};
use alphamf_samplers::targets::Gaussian;
use alphamf_samplers::{Chain, GradientSettings, SamplerError, StepSize, Target, diagnostics};

struct Turning(f64);

impl Recipe for Turning {
    fn matrix(&mut self, _: &mut dyn Target<f64>, _: &[f64], matrix: &mut [f64]) {
        // Column-major: D is the identity, and Q rotates the first unknown towards the second.
        matrix.copy_from_slice(&[1.0, self.0, -self.0, 1.0]);
    }
}

fn run(name: &str, recipe: impl Recipe) -> Result<(), SamplerError> {
    // Variances 1 and 1/16.
    let target = Gaussian::new(vec![0.0; 2], vec![1.0, 0.0, 0.0, 16.0])?;
    let settings = GradientSettings { step_size: StepSize::Constant(0.005), ..GradientSettings::default() };
    let sampler = RecipeSampler::new(2, recipe, settings, SeedTree::new(1))?;
    let mut chain = Chain::new(target, sampler, vec![0.0; 2])?;
    let mut draws = Vec::new();
    chain.run(200_000, |draw| draws.push(draw.theta[0]));
    let (mean, variance) = diagnostics::mean_and_variance(&draws);
    let size = diagnostics::effective_size_mean(&[draws]);
    println!("{name}: mean {mean:.3}, variance {variance:.3} (1), effective size {size:.0}");
    Ok(())
}

fn main() -> Result<(), SamplerError> {
    run("straight", Langevin)?;
    run("turning", Turning(3.0))
}
