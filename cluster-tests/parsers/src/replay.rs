//! Runs a target over its corpus and over seeded changes of it, and keeps what made it fail.
//!
//! Owns where the corpus stands, the order of tries and the files of failures. The same seed makes the same inputs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{Target, mutate, panics};

/// Most files of one corpus.
pub const FILES_MAX: usize = 30;
/// Most bytes of one of them.
pub const FILE_BYTES_MAX: usize = 4 * 1024;

/// What came of it.
#[derive(Debug)]
pub struct Replayed {
    /// Inputs tried.
    pub tries: u64,
    /// The first that failed: where it was written, and why.
    pub failure: Option<(PathBuf, String)>,
}

/// Where the corpus of a target stands in the repository.
pub fn corpus_dir(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target.name)
}

/// The corpus, by name of file. An error is a corpus that is missing or larger than it may be.
pub fn corpus(target: &Target) -> io::Result<Vec<Vec<u8>>> {
    let dir = corpus_dir(target);
    let mut paths = fs::read_dir(&dir)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    let files = paths.iter().map(fs::read).collect::<io::Result<Vec<_>>>()?;
    let large = files.iter().any(|file| file.len() > FILE_BYTES_MAX);
    if files.is_empty() || files.len() > FILES_MAX || large {
        let words = format!("{}: 1 to {FILES_MAX} files of up to {FILE_BYTES_MAX} bytes belong here", dir.display());
        return Err(io::Error::other(words));
    }
    Ok(files)
}

/// Makes the corpus anew from the samples; files of other origin stay.
pub fn bless(target: &Target) -> io::Result<()> {
    let dir = corpus_dir(target);
    fs::create_dir_all(&dir)?;
    for (number, sample) in (target.samples)().iter().enumerate() {
        fs::write(dir.join(format!("sample-{number:02}")), sample)?;
    }
    Ok(())
}

/// Checks one input. An error says why it failed.
pub fn check(target: &Target, bytes: &[u8]) -> Result<(), String> {
    match panics::noting(|| (target.check)(bytes)) {
        noted if noted.is_empty() => Ok(()),
        noted => Err(noted.join("\n")),
    }
}

/// Fewer inputs mean nothing, however little time there was for them.
const TRIES_MIN: u64 = 50;

/// Runs the corpus, then changes of it until the time is up and [`TRIES_MIN`] inputs were tried, or one fails. Failures are written to `failures`.
pub fn run(target: &Target, seed: u64, during: Duration, failures: &Path) -> io::Result<Replayed> {
    let corpus = corpus(target)?;
    // What is made at the first try does not count.
    let mut until = None;
    let mut replayed = Replayed { tries: 0, failure: None };
    let mut dice = StdRng::seed_from_u64(seed);
    let mut plain = corpus.iter();
    while replayed.failure.is_none() {
        let input = match plain.next() {
            Some(file) => file.clone(),
            None if Instant::now() >= *until.get_or_insert_with(|| Instant::now() + during)
                && replayed.tries >= TRIES_MIN =>
            {
                break;
            }
            None => {
                let mut input = corpus[dice.random_range(0..corpus.len())].clone();
                mutate::mutate(&mut dice, &mut input, &corpus);
                input
            }
        };
        replayed.tries += 1;
        if let Err(why) = check(target, &input) {
            let path = failures.join(format!("{}-{seed}-{}", target.name, replayed.tries));
            fs::create_dir_all(failures)?;
            fs::write(&path, &input)?;
            replayed.failure = Some((path, why));
        }
    }
    Ok(replayed)
}
