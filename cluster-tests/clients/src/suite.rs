//! The form of a file: its name and its steps.
//!
//! Owns that what is not known, or makes no sense, is refused before anything runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

const WITHIN_DEFAULT: Duration = Duration::from_secs(15);

/// One file of the suite.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// A sentence.
    pub name: String,
    /// Whether it is one of those that run everywhere.
    #[serde(default, rename = "quick")]
    pub is_quick: bool,
    /// Capabilities without which it cannot be run.
    #[serde(default)]
    pub needs: Vec<String>,
    /// From how many endpoints its client is made; from all if not given.
    pub endpoints: Option<usize>,
    pub steps: Vec<Step>,
    /// The name of the file without its ending.
    #[serde(skip)]
    pub base: String,
}

/// One step of a file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    call: Option<String>,
    start: Option<String>,
    next: Option<String>,
    stop: Option<String>,
    fault: Option<String>,
    cancel: Option<String>,
    join: Option<String>,
    #[serde(default)]
    pub with: Map<String, Value>,
    /// The name of what it makes.
    #[serde(rename = "as")]
    pub names: Option<String>,
    /// The name of what it is about.
    pub of: Option<String>,
    pub expect: Option<Value>,
    #[serde(default)]
    pub greater: Map<String, Value>,
    pub error: Option<Value>,
    /// Field of the answer, and the variable that it becomes.
    #[serde(default)]
    pub save: BTreeMap<String, String>,
    #[serde(default)]
    pub background: bool,
    pub repeat: Option<u32>,
    #[serde(default)]
    pub eventually: bool,
    within_ms: Option<u64>,
}

/// What a step does, with the name that stands behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb<'s> {
    Call(&'s str),
    Start(&'s str),
    Next(&'s str),
    Stop(&'s str),
    Fault(&'s str),
    Cancel(&'s str),
    Join(&'s str),
}

impl Step {
    pub fn verb(&self) -> Result<Verb<'_>, String> {
        let verbs = [
            self.call.as_deref().map(Verb::Call),
            self.start.as_deref().map(Verb::Start),
            self.next.as_deref().map(Verb::Next),
            self.stop.as_deref().map(Verb::Stop),
            self.fault.as_deref().map(Verb::Fault),
            self.cancel.as_deref().map(Verb::Cancel),
            self.join.as_deref().map(Verb::Join),
        ];
        let mut verbs = verbs.into_iter().flatten();
        match (verbs.next(), verbs.next()) {
            (Some(verb), None) => Ok(verb),
            (None, _) => Err("it does nothing".to_owned()),
            (Some(_), Some(_)) => Err("it does more than one thing".to_owned()),
        }
    }

    pub fn within(&self) -> Duration {
        self.within_ms.map_or(WITHIN_DEFAULT, Duration::from_millis)
    }

    fn check(&self) -> Result<(), String> {
        let verb = self.verb()?;
        if self.background && (self.names.is_none() || !matches!(verb, Verb::Call(_))) {
            return Err("only a call runs in the background, and it has a name there".to_owned());
        }
        if matches!(verb, Verb::Start(_)) && self.names.is_none() {
            return Err("what is started has a name".to_owned());
        }
        Ok(())
    }
}

impl File {
    /// What it needs beyond `capabilities`.
    pub fn missing(&self, capabilities: &[&str]) -> Vec<&str> {
        self.needs.iter().map(String::as_str).filter(|need| !capabilities.contains(need)).collect()
    }

    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let base = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self::parse(&text, base).map_err(|why| format!("{}: {why}", path.display()))
    }

    fn parse(text: &str, base: String) -> Result<Self, String> {
        let file: Self = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        if file.name.is_empty() || file.steps.is_empty() {
            return Err("it has no name or no steps".to_owned());
        }
        for (n, step) in (1..).zip(&file.steps) {
            step.check().map_err(|why| format!("step {n}: {why}"))?;
        }
        Ok(Self { base, ..file })
    }
}

/// All files of a directory, by name.
pub fn paths(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let entries = entries.map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut paths: Vec<_> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "yaml"));
    paths.sort();
    if paths.is_empty() { Err(format!("{}: there is no file of the suite", directory.display())) } else { Ok(paths) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(text: &str) -> Result<File, String> {
        File::parse(text, "x".to_owned())
    }

    #[test]
    fn every_file_of_the_suite_has_the_form_of_one() {
        let paths = paths(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/conformance")).expect("files");
        let files: Vec<_> = paths.iter().map(|path| File::read(path).expect("a file of the suite")).collect();
        assert!(files.iter().any(|file| file.is_quick) && files.iter().any(|file| !file.is_quick));
    }

    /// What YAML 1.1 takes for booleans and YAML 1.2 does not.
    const OLD_BOOLEANS: [&str; 6] = ["n", "y", "no", "yes", "on", "off"];

    /// The words of a line that stand alone, without quotes.
    fn plain_words(line: &str) -> impl Iterator<Item = &str> {
        let unquoted = line.split('"').step_by(2);
        let parts = unquoted.flat_map(|part| part.split(['{', '}', '[', ']', ','])).flat_map(|part| part.split(": "));
        parts.map(|part| part.trim().trim_start_matches("- ").trim_end_matches(':'))
    }

    #[test]
    fn what_old_parsers_take_for_booleans_is_quoted() {
        let is_old = |word: &str| OLD_BOOLEANS.contains(&word.to_lowercase().as_str());
        assert!(
            plain_words(r#"    - {a: {n: 1}, b: "y"}"#).any(is_old)
                && !plain_words(r#"x: no more, "n": "y""#).any(is_old)
        );
        for path in paths(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/conformance")).expect("files") {
            let text = std::fs::read_to_string(&path).expect("a file");
            for (n, line) in (1..).zip(text.lines()) {
                assert!(!plain_words(line).any(is_old), "{}:{n}: {line}", path.display());
            }
        }
    }

    #[test]
    fn values_keep_their_types() {
        let file = parse(
            "name: a\nsteps:\n  - call: put\n    with: {n: 1, y: \"1\", big: 9223372036854775807, low: -9223372036854775808, half: 0.5, no: null, t: true}\n",
        );
        let expected = json!({"n": 1, "y": "1", "big": i64::MAX, "low": i64::MIN, "half": 0.5, "no": null, "t": true});
        assert_eq!(Value::Object(file.expect("a file").steps[0].with.clone()), expected);
    }

    #[test]
    fn a_file_says_what_it_needs_and_is_not_there() {
        let file = parse("name: a\nneeds: [cancel, fork]\nsteps: [{cancel: b}]\n").expect("a file");
        assert_eq!(file.missing(&["cancel", "suspend"]), ["fork"]);
        assert_eq!(file.steps[0].verb(), Ok(Verb::Cancel("b")));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for (text, hint) in [
            ("name: a\nsteps: []\n", "no steps"),
            ("name: a\nslow: true\nsteps: [{call: get}]\n", "slow"),
            ("name: a\nsteps: [{call: get, withh: {}}]\n", "withh"),
            ("name: a\nsteps: [{call: get, join: b}]\n", "more than one"),
            ("name: a\nsteps: [{as: b}]\n", "nothing"),
            ("name: a\nsteps: [{call: get, background: true}]\n", "background"),
            ("name: a\nsteps: [{start: watch}]\n", "name"),
            ("name: a\nsteps: [{call: get, call: put}]\n", "call"),
        ] {
            let why = parse(text).expect_err(text);
            assert!(why.contains(hint), "{hint}: {why}");
        }
    }
}
