//! Linear regressions with normal noise, by their sufficient statistics.

use super::{Data, Density};

/// The prior of a coefficient.
#[derive(Clone, Copy)]
enum Prior {
    Flat,
    Normal(f64, f64),
    /// Of three degrees of freedom.
    Student(f64, f64),
}

impl Prior {
    /// The log density and its slope.
    fn at(self, x: f64) -> (f64, f64) {
        match self {
            Self::Flat => (0.0, 0.0),
            Self::Normal(mean, deviation) => {
                let z = (x - mean) / deviation;
                (-0.5 * z * z, -z / deviation)
            }
            Self::Student(mean, scale) => {
                let z = (x - mean) / scale;
                (-2.0 * (z * z / 3.0).ln_1p(), -4.0 * z / (3.0 + z * z) / scale)
            }
        }
    }
}

/// The prior of the deviation of the noise.
#[derive(Clone, Copy)]
enum NoisePrior {
    Flat,
    Cauchy(f64),
    Of(Prior),
}

pub struct Regression {
    count: f64,
    /// `X'X` by rows, the least-squares fit, and the sum of squares that it leaves.
    gram: Vec<Vec<f64>>,
    fit: Vec<f64>,
    left: f64,
    priors: Vec<Prior>,
    noise: NoisePrior,
}

impl Regression {
    fn new(columns: &[Vec<f64>], y: &[f64], priors: Vec<Prior>, noise: NoisePrior) -> Self {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let gram: Vec<Vec<f64>> =
            columns.iter().map(|a| columns.iter().map(|b| dot(a, b)).collect()).collect();
        let mut fit = vec![0.0; columns.len()];
        let mut residual = y.to_vec();
        // Twice: the second solution corrects the rounding of the first.
        for _ in 0..2 {
            let right: Vec<f64> = columns.iter().map(|a| dot(a, &residual)).collect();
            for ((fit, change), column) in fit.iter_mut().zip(solve(&gram, right)).zip(columns) {
                *fit += change;
                residual.iter_mut().zip(column).for_each(|(r, x)| *r -= change * x);
            }
        }
        Self { count: y.len() as f64, gram, fit, left: dot(&residual, &residual), priors, noise }
    }
}

/// Gaussian elimination with scaled pivots.
fn solve(matrix: &[Vec<f64>], mut right: Vec<f64>) -> Vec<f64> {
    let n = right.len();
    let mut a = matrix.to_vec();
    for k in 0..n {
        let size = |row: &usize| a[*row][k].abs() / a[*row].iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        let pivot = (k..n).max_by(|i, j| size(i).total_cmp(&size(j))).unwrap();
        a.swap(k, pivot);
        right.swap(k, pivot);
        for i in k + 1..n {
            let factor = a[i][k] / a[k][k];
            for j in k..n {
                a[i][j] -= factor * a[k][j];
            }
            right[i] -= factor * right[k];
        }
    }
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| a[k][j] * right[j]).sum();
        right[k] = (right[k] - known) / a[k][k];
    }
    right
}

impl Density for Regression {
    fn dimension(&self) -> usize {
        self.fit.len() + 1
    }

    fn evaluate(&self, phi: &[f64], gradient: &mut [f64]) -> f64 {
        let n = self.fit.len();
        let deviation = phi[n].exp();
        let precision = 1.0 / (deviation * deviation);
        let away: Vec<f64> = phi.iter().zip(&self.fit).map(|(b, fit)| b - fit).collect();
        let mut squares = self.left;
        let mut density = 0.0;
        for i in 0..n {
            let slope: f64 = self.gram[i].iter().zip(&away).map(|(g, a)| g * a).sum();
            squares += away[i] * slope;
            let (prior, prior_slope) = self.priors[i].at(phi[i]);
            density += prior;
            gradient[i] = prior_slope - precision * slope;
        }
        density += -0.5 * precision * squares - (self.count - 1.0) * phi[n];
        gradient[n] = precision * squares - (self.count - 1.0);
        let (prior, slope) = match self.noise {
            NoisePrior::Flat => (0.0, 0.0),
            NoisePrior::Cauchy(scale) => {
                let z = deviation / scale;
                (-(z * z).ln_1p(), -2.0 * z / (1.0 + z * z) / scale)
            }
            NoisePrior::Of(prior) => prior.at(deviation),
        };
        gradient[n] += slope * deviation;
        density + prior
    }

    fn report(&self, phi: &[f64]) -> Vec<f64> {
        let mut parameters = phi.to_vec();
        if let Some(last) = parameters.last_mut() {
            *last = last.exp();
        }
        parameters
    }
}

fn map(a: &[f64], f: impl Fn(f64) -> f64) -> Vec<f64> {
    a.iter().map(|&x| f(x)).collect()
}

fn times(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a * b).collect()
}

/// 1 where `a` is `value`.
fn equals(a: &[f64], value: f64) -> Vec<f64> {
    map(a, |x| f64::from(x == value))
}

pub fn posterior(name: &str, data: &Data<'_>) -> Regression {
    let flat = |columns: Vec<Vec<f64>>, y: Vec<f64>, noise| {
        let mut all = vec![vec![1.0; y.len()]];
        all.extend(columns);
        let priors = vec![Prior::Flat; all.len()];
        Regression::new(&all, &y, priors, noise)
    };
    let get = |name: &str| data.vector(name);
    let log = |name: &str| map(&data.vector(name), f64::ln);
    match name {
        "kidiq-kidscore_interaction" => {
            let (hs, iq) = (get("mom_hs"), get("mom_iq"));
            let both = times(&hs, &iq);
            flat(vec![hs, iq, both], get("kid_score"), NoisePrior::Cauchy(2.5))
        }
        "kidiq-kidscore_momhsiq" => {
            flat(vec![get("mom_hs"), get("mom_iq")], get("kid_score"), NoisePrior::Cauchy(2.5))
        }
        "kidiq_with_mom_work-kidscore_interaction_c2" => {
            let (hs, iq) = (map(&get("mom_hs"), |x| x - 0.5), map(&get("mom_iq"), |x| x - 100.0));
            let both = times(&hs, &iq);
            flat(vec![hs, iq, both], get("kid_score"), NoisePrior::Flat)
        }
        "kidiq_with_mom_work-kidscore_mom_work" => {
            let work = get("mom_work");
            let columns = [2.0, 3.0, 4.0].map(|value| equals(&work, value)).to_vec();
            flat(columns, get("kid_score"), NoisePrior::Flat)
        }
        "earnings-earn_height" => flat(vec![get("height")], get("earn"), NoisePrior::Flat),
        "earnings-logearn_interaction" => {
            let (height, male) = (get("height"), get("male"));
            let both = times(&height, &male);
            flat(vec![height, male, both], log("earn"), NoisePrior::Flat)
        }
        "mesquite-mesquite" => {
            let names = ["diam1", "diam2", "canopy_height", "total_height", "density", "group"];
            flat(names.map(get).to_vec(), get("weight"), NoisePrior::Flat)
        }
        "mesquite-logmesquite_logvash" => {
            let [a, b, height, total] = ["diam1", "diam2", "canopy_height", "total_height"].map(log);
            let area: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
            let volume = area.iter().zip(&height).map(|(a, h)| a + h).collect();
            let shape = a.iter().zip(&b).map(|(a, b)| a - b).collect();
            flat(vec![volume, area, shape, total, get("group")], log("weight"), NoisePrior::Flat)
        }
        "nes1976-nes" | "nes2000-nes" => {
            let age = get("age_discrete");
            let mut columns = vec![get("real_ideo"), get("race_adj")];
            columns.extend([2.0, 3.0, 4.0].map(|value| equals(&age, value)));
            columns.extend(["educ1", "gender", "income"].map(get));
            flat(columns, get("partyid7"), NoisePrior::Flat)
        }
        "kilpisjarvi_mod-kilpisjarvi" => {
            let y = get("y");
            let prior =
                |mean: &str, deviation: &str| Prior::Normal(data.number(mean), data.number(deviation));
            let priors = vec![prior("pmualpha", "psalpha"), prior("pmubeta", "psbeta")];
            Regression::new(&[vec![1.0; y.len()], get("x")], &y, priors, NoisePrior::Flat)
        }
        "sblrc-blr" | "sblri-blr" => {
            let rows = data.rows("X");
            let columns: Vec<Vec<f64>> =
                (0..rows[0].len()).map(|j| rows.iter().map(|row| row[j]).collect()).collect();
            let priors = vec![Prior::Normal(0.0, 10.0); columns.len()];
            Regression::new(&columns, &get("y"), priors, NoisePrior::Of(Prior::Normal(0.0, 10.0)))
        }
        "diamonds-diamonds" => {
            let rows = data.rows("X");
            let mut columns: Vec<Vec<f64>> = (1..rows[0].len())
                .map(|j| {
                    let mean = rows.iter().map(|row| row[j]).sum::<f64>() / rows.len() as f64;
                    rows.iter().map(|row| row[j] - mean).collect()
                })
                .collect();
            let mut priors = vec![Prior::Normal(0.0, 1.0); columns.len()];
            columns.push(vec![1.0; rows.len()]);
            priors.push(Prior::Student(8.0, 10.0));
            Regression::new(&columns, &get("Y"), priors, NoisePrior::Of(Prior::Student(0.0, 10.0)))
        }
        _ => panic!("{name}: no such model"),
    }
}
