//! Distributed training gives the dictionary of a single process, also when it resumes from a checkpoint. Threads stand in
//! for processes, so that this runs without MPI.

use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::thread;

use alphamf::learning::{CheckpointStore, Corpus, TrainingError, TrainingSettings};
use alphamf::random::SeedTree;
use alphamf::signal::{SampleFormat, Signal};
use alphamf_samplers::distributed::{Communicator, Local};
use rand_distr::{Distribution, StandardNormal};

const RATE: u32 = 8_000;

/// Coloured noise, with a different colour and length in each recording.
fn recordings(count: usize) -> Vec<Signal> {
    let recording = |index: usize| {
        let mut stream = SeedTree::new(9).rng(index as u64);
        let mut last = 0.0;
        let samples = (0..RATE as usize / 2 * (1 + index % 3)).map(|_| {
            let noise: f32 = StandardNormal.sample(&mut stream);
            last = 0.1 * noise + 0.3 * index as f32 / count as f32 * last;
            last
        });
        Signal::new(RATE, SampleFormat::Float32, vec![samples.collect()]).unwrap()
    };
    (0..count).map(recording).collect()
}

fn corpus(speech: &[Signal]) -> Corpus {
    let settings = TrainingSettings { rank: 5, iterations: 6, ..TrainingSettings::default() };
    let mut corpus = Corpus::new(RATE, settings).unwrap();
    speech.iter().for_each(|speech| corpus.add(speech).unwrap());
    corpus
}

/// Results of several processes that train on their part of the recordings, cancelled after `sweeps` of six sweeps.
fn learn_on<K: CheckpointStore + Clone + Send>(
    ranks: usize,
    speech: &[Signal],
    checkpoints: &K,
    sweeps: usize,
) -> Vec<Result<Vec<u8>, TrainingError>> {
    thread::scope(|scope| {
        let learn = |mut local: Local| {
            let rank = local.rank();
            // Parts of different size, some of them empty.
            let bound = |rank: usize| speech.len() * rank * rank / (ranks * ranks);
            let corpus = corpus(&speech[bound(rank)..bound(rank + 1)]);
            let mut checkpoints = checkpoints.clone();
            scope.spawn(move || {
                let mut progress = |fraction: f64| {
                    let cancelled = fraction * 6.0 > sweeps as f64 - 0.5 && sweeps < 6;
                    if cancelled { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                };
                let dictionary = corpus.train_distributed(&mut local, &mut checkpoints, &mut progress)?;
                Ok(dictionary.to_bytes()?)
            })
        };
        let threads: Vec<_> = Local::group(ranks).into_iter().map(learn).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn any_number_of_processes_trains_the_same_dictionary() {
    let speech = recordings(11);
    let alone = corpus(&speech).train().unwrap().to_bytes().unwrap();
    for ranks in [2, 3, 17] {
        for dictionary in learn_on(ranks, &speech, &(), 6) {
            assert!(dictionary.unwrap() == alone, "{ranks} processes");
        }
    }
    assert!(corpus(&speech[1..]).train().unwrap().to_bytes().unwrap() != alone);
}

/// Bytes of parts, by sweep and number.
type Parts = HashMap<(usize, usize), Vec<u8>>;

/// Checkpoints in shared memory, every `every` sweeps.
#[derive(Clone, Default)]
struct Kept {
    parts: Arc<Mutex<Parts>>,
    every: usize,
    newest: Option<usize>,
}

impl CheckpointStore for Kept {
    fn is_due(&self, sweeps: usize) -> bool {
        self.every > 0 && sweeps.is_multiple_of(self.every)
    }
    fn save(&mut self, sweeps: usize, part: usize, bytes: &[u8]) -> io::Result<()> {
        self.parts.lock().unwrap().insert((sweeps, part), bytes.to_vec());
        Ok(())
    }
    fn commit(&mut self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn latest(&self) -> Option<usize> {
        self.newest
    }
    fn load(&mut self, sweeps: usize, part: usize) -> io::Result<Vec<u8>> {
        self.parts.lock().unwrap().get(&(sweeps, part)).cloned().ok_or(io::ErrorKind::NotFound.into())
    }
}

#[test]
fn training_resumes_from_a_checkpoint_on_another_number_of_processes() {
    let speech = recordings(11);
    let alone = corpus(&speech).train().unwrap().to_bytes().unwrap();
    let kept = Kept { every: 2, ..Kept::default() };
    for stopped in learn_on(3, &speech, &kept, 5) {
        assert!(matches!(stopped, Err(TrainingError::Cancelled(_))));
    }
    let resumed = Kept { newest: Some(4), ..kept };
    for dictionary in learn_on(2, &speech, &resumed, 6) {
        assert!(dictionary.unwrap() == alone);
    }
    // A checkpoint of other speech is refused.
    for refused in learn_on(1, &speech[..4], &resumed, 6) {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("after 4 sweeps") && error.contains("numbers; expected"), "{error}");
    }
    // The checkpoint is used: another one gives another result.
    resumed.parts.lock().unwrap().get_mut(&(4, 1)).unwrap()[2] ^= 1;
    assert!(learn_on(2, &speech, &resumed, 6).into_iter().all(|dictionary| dictionary.unwrap() != alone));
}
