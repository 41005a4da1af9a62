//! Fewer steps that still fail.
//!
//! Owns leaving steps out, large parts first (delta debugging). Never changes a step: what is left follows from its seed.

use crate::names::Texts;
use crate::run::{self, Failure, Met};

/// A failure in as few steps as can be found. `take` takes the steps of a list of seeds.
pub fn shrink(failure: Failure, mut take: impl FnMut(&[u64]) -> Result<Met, Failure>) -> Failure {
    let mut best = failure;
    let mut size = best.seeds.len() / 2;
    while size > 0 {
        let mut from = 0;
        let before = best.seeds.len();
        while from < best.seeds.len() {
            let to = (from + size).min(best.seeds.len());
            let rest = [&best.seeds[..from], &best.seeds[to..]].concat();
            match take(&rest) {
                Err(fewer) if fewer.is_like(&best) => best = fewer,
                _ => from = to,
            }
        }
        size = if size == 1 && best.seeds.len() < before { 1 } else { size / 2 };
    }
    best
}

/// The steps of a failure as text.
pub fn told(first: u64, failure: &Failure, texts: &Texts) -> String {
    let mut lines = Vec::new();
    let _fails = run::run(first, &failure.seeds, texts, &mut |picture, step| {
        lines.push(format!(
            "clock {} (+{}), revision {}: {:?}",
            picture.vars.clock, step.clock, picture.vars.revision, step.what
        ));
    });
    format!("{}\n=> {}", lines.join("\n"), failure.words)
}
