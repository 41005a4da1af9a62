//! What reads bytes that others wrote, and what must hold of it whatever they are.
//!
//! Owns the list of targets: one for each family of parsers, each a plain function of some bytes that panics where a promise is
//! broken. libFuzzer (`fuzz/`), the test `parsers` and the program `fuzz-parsers` run the same functions. Never needs a process, a
//! cluster, or another crate of tests.
//!
//! Reading order: `requests` and `samples` (real values to begin with), the targets, then `mutate`, `memory` and `replay`, which run them.

pub mod api;
pub mod extremes;
pub mod memory;
pub mod panics;
pub mod replay;
pub mod samples;

mod backup;
mod commands;
mod documents;
mod frames;
mod http;
mod log;
mod mutate;
mod requests;
mod rows;

#[expect(dead_code, reason = "shared with the tests of the node, each of which uses a part")]
#[path = "../../../node/http/tests/http_api/memory_node/mod.rs"]
mod memory_node;

#[expect(dead_code, reason = "shared with the tests of the node and with attacks, each of which uses a part")]
#[path = "../../../node/http/tests/http_api/http_2.rs"]
mod http_2;

/// One family of parsers.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Names its corpus, `fuzz/corpus/NAME`, and its libFuzzer target.
    pub name: &'static str,
    /// Panics where the bytes make a parser break a promise.
    pub check: fn(&[u8]),
    /// Real values, from which the corpus is made.
    pub samples: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub const TARGETS: [Target; 8] = [
    Target { name: "commands", check: commands::check, samples: commands::samples },
    Target { name: "rows", check: rows::check, samples: rows::samples },
    Target { name: "log", check: log::check, samples: log::samples },
    Target { name: "backup", check: backup::check, samples: backup::samples },
    Target { name: "frames", check: frames::check, samples: frames::samples },
    Target { name: "documents", check: documents::check, samples: documents::samples },
    Target { name: "http", check: http::check, samples: http::samples },
    Target { name: "api", check: api::check, samples: api::samples },
];

/// The target of this name.
pub fn named(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// What was wrong is told in words.
fn assert_explained(error: &dyn std::fmt::Display) {
    assert!(!error.to_string().trim().is_empty(), "an error without a word");
}
