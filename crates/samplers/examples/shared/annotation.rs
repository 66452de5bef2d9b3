//! The annotation model of `newtonian` section 4 (Dawid and Skene 1979; Passonneau and Carpenter 2014) on the public
//! interface. It infers the classes of items from labels, with a confusion matrix per labeller.

use alphamf_samplers::{Minibatch, Site, Sites, Support, Target};

/// A label: labeller, item and class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    pub labeller: usize,
    pub item: usize,
    pub class: usize,
}

/// The state is the class probabilities (`C`), every labeller's confusion matrix row by row (`K x C x C`) and every item's
/// class (`N`, whole numbers).
#[derive(Debug, Clone)]
pub struct Annotation {
    pub classes: usize,
    pub labellers: usize,
    pub items: usize,
    /// `(item, class)` of every label, labeller by labeller, and `(labeller, class)`, item by item.
    by_labeller: Vec<Vec<(usize, usize)>>,
    by_item: Vec<Vec<(usize, usize)>>,
    /// Prior concentrations: of the class probabilities, of a correct label and of a wrong label.
    share: f64,
    right: f64,
    wrong: f64,
}

impl Annotation {
    /// Creates a model with the prior of the paper: class probabilities `Dirichlet(1 / C)`; rows of confusion matrices
    /// with concentration `gamma` and prior correctness `rho`.
    pub fn new(
        [labellers, items, classes]: [usize; 3],
        labels: &[Label],
        concentration: f64,
        correctness: f64,
    ) -> Self {
        let (mut by_labeller, mut by_item) = (vec![Vec::new(); labellers], vec![Vec::new(); items]);
        for label in labels {
            by_labeller[label.labeller].push((label.item, label.class));
            by_item[label.item].push((label.labeller, label.class));
        }
        Self {
            classes,
            labellers,
            items,
            by_labeller,
            by_item,
            share: 1.0 / classes as f64,
            right: concentration * correctness,
            wrong: concentration * (1.0 - correctness) / (classes - 1) as f64,
        }
    }

    /// Index of the first item's class.
    pub fn first_item(&self) -> usize {
        self.classes + self.labellers * self.classes * self.classes
    }

    /// Index of the probability that a labeller gives `class` to an item of class `truth`.
    pub fn confusion(&self, labeller: usize, truth: usize, class: usize) -> usize {
        self.classes + (labeller * self.classes + truth) * self.classes + class
    }

    /// The concentration of an entry of a confusion matrix.
    pub fn prior(&self, truth: usize, class: usize) -> f64 {
        if truth == class { self.right } else { self.wrong }
    }

    /// Returns the initial state: equal class probabilities, the prior mean of the confusion matrices, and the most
    /// frequent label of every item.
    pub fn start(&self) -> Vec<f64> {
        let total = self.right + (self.classes - 1) as f64 * self.wrong;
        let mut theta = vec![self.share; self.classes];
        for _ in 0..self.labellers {
            for truth in 0..self.classes {
                theta.extend((0..self.classes).map(|class| self.prior(truth, class) / total));
            }
        }
        theta.extend(self.by_item.iter().map(|labels| {
            let votes = |class: usize| labels.iter().filter(|(_, label)| *label == class).count();
            (0..self.classes).max_by_key(|&class| votes(class)).unwrap_or_default() as f64
        }));
        theta
    }

    /// Computes the probability of the labels of a held-out item, its class integrated out.
    pub fn likelihood(&self, theta: &[f64], labels: &[(usize, usize)]) -> f64 {
        let of_class = |truth: usize| {
            let given = labels.iter().map(|&(labeller, class)| theta[self.confusion(labeller, truth, class)]);
            theta[truth] * given.product::<f64>()
        };
        (0..self.classes).map(of_class).sum()
    }

    /// Counts the occurrences of each entry of a simplex, without its prior.
    fn counts(&self, theta: &[f64], index: usize, counts: &mut [f64]) {
        counts.fill(0.0);
        let items = &theta[self.first_item()..];
        if index == 0 {
            items.iter().for_each(|&class| counts[class as usize] += 1.0);
        } else {
            let (labeller, truth) = ((index - 1) / self.classes, (index - 1) % self.classes);
            let labels = self.by_labeller[labeller].iter().filter(|(item, _)| items[*item] as usize == truth);
            labels.for_each(|(_, class)| counts[*class] += 1.0);
        }
    }

    fn concentration(&self, index: usize, entry: usize) -> f64 {
        if index == 0 { self.share } else { self.prior((index - 1) % self.classes, entry) }
    }
}

impl Target<f64> for Annotation {
    fn dimension(&self) -> usize {
        self.first_item() + self.items
    }

    /// Computes the gradient for class probabilities and confusion matrices; it is zero for the discrete classes.
    fn gradient(&mut self, theta: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        gradient.fill(0.0);
        let mut counts = vec![0.0; self.classes];
        for index in 0..=self.labellers * self.classes {
            self.counts(theta, index, &mut counts);
            for (entry, count) in counts.iter().enumerate() {
                let place = index * self.classes + entry;
                gradient[place] = (1.0 - self.concentration(index, entry) - count) / theta[place];
            }
        }
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        let mut counts = vec![0.0; self.classes];
        potential[0] = 0.0;
        for index in 0..=self.labellers * self.classes {
            self.counts(theta, index, &mut counts);
            for (entry, count) in counts.iter().enumerate() {
                let exponent = self.concentration(index, entry) - 1.0 + count;
                potential[0] -= exponent * theta[index * self.classes + entry].ln();
            }
        }
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<f64>> {
        Some(self)
    }
}

impl Sites<f64> for Annotation {
    fn count(&self) -> usize {
        1 + self.labellers * self.classes + self.items
    }

    fn site(&self, index: usize) -> Site {
        let simplices = 1 + self.labellers * self.classes;
        if index < simplices {
            let rows = index * self.classes..(index + 1) * self.classes;
            return Site { rows, support: Support::Simplex };
        }
        let row = self.first_item() + index - simplices;
        Site { rows: row..row + 1, support: Support::Discrete(self.classes) }
    }

    /// Expands a simplex, which depends on the classes of items, or an item, which depends on its labels.
    fn expand(&mut self, theta: &[f64], index: usize, u: &mut [f64], g: &mut [f64], h: &mut [f64]) {
        let simplices = 1 + self.labellers * self.classes;
        u[0] = 0.0;
        if index >= simplices {
            let item = index - simplices;
            let truth = theta[self.first_item() + item] as usize;
            u[0] -= theta[truth].ln();
            for &(labeller, class) in &self.by_item[item] {
                u[0] -= theta[self.confusion(labeller, truth, class)].ln();
            }
            return;
        }
        h.fill(0.0);
        self.counts(theta, index, g);
        for entry in 0..self.classes {
            let x = theta[index * self.classes + entry];
            let exponent = self.concentration(index, entry) - 1.0 + g[entry];
            u[0] -= exponent * x.ln();
            g[entry] = -exponent / x;
            h[entry * self.classes + entry] = exponent / (x * x);
        }
    }
}
