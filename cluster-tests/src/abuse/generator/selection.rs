//! The waves that a run is asked for, by how their names begin.
//!
//! Owns the arguments that ask for them. Never carries one out.

use super::wave::{Wave, all};
use crate::abuse::way::Way;

/// The argument that stands for all waves; with a colon behind it, for those whose names begin with what follows.
pub const GENERATED: &str = "generated";

/// How the names of the waves begin that an argument asks for; `None` where it asks for something else.
pub fn begin_of(argument: &str) -> Option<&str> {
    let rest = argument.strip_prefix(GENERATED)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(':') }
}

/// The waves that a run is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection(Vec<String>);

impl Selection {
    /// Selects all waves whose names begin with one of these. An error tells which of them begins no name.
    pub fn of(begins: &[&str]) -> Result<Self, String> {
        // The names are the same whatever can be asked for.
        let known = all(&[]);
        match begins.iter().find(|begin| !known.iter().any(|wave| wave.name.starts_with(**begin))) {
            Some(none) => Err(format!("no name of a wave begins with `{none}`; one name is `{}`", known[0].name)),
            None => Ok(Self(begins.iter().map(|begin| (*begin).to_owned()).collect())),
        }
    }

    /// Tells whether a wave is selected.
    pub fn has(&self, wave: &Wave) -> bool {
        self.0.iter().any(|begin| wave.name.starts_with(begin.as_str()))
    }

    /// Counts the waves of a protocol that are selected.
    pub fn count(&self, way: Way) -> usize {
        all(&[]).iter().filter(|wave| wave.way == way && self.has(wave)).count()
    }

    /// Tells whether all waves of a protocol are selected.
    pub fn is_whole(&self, way: Way) -> bool {
        all(&[]).iter().filter(|wave| wave.way == way).all(|wave| self.has(wave))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(selection: &Selection) -> [(usize, bool); 4] {
        Way::ALL.map(|way| (selection.count(way), selection.is_whole(way)))
    }

    #[test]
    fn an_argument_names_all_waves_or_the_begin_of_some() {
        assert_eq!(begin_of("generated"), Some(""));
        assert_eq!(begin_of("generated:HTTP/2"), Some("HTTP/2"));
        assert_eq!([begin_of("generated-puts"), begin_of("puts")], [None, None]);
    }

    #[test]
    fn those_are_selected_whose_names_begin_so() {
        let of = |begins: &[&str]| Selection::of(begins).expect("there are such waves");
        let (every, none) = ((48, true), (0, false));
        assert_eq!(counts(&of(&[""])), [every; 4]);
        assert_eq!(counts(&of(&[])), [none; 4]);
        assert_eq!(counts(&of(&["HTTP/2"])), [none, every, none, none]);
        let narrow = "HTTP/1.1, cheapest bytes for most work, tenant";
        assert_eq!(counts(&of(&[narrow])), [(2, false), none, none, none]);
        // What two of them name is selected once.
        assert_eq!(counts(&of(&[narrow, "HTTP/1.1, cheapest", "gRPC"])), [(6, false), none, every, none]);
        let unknown = Selection::of(&["gRPC", "tenant"]).expect_err("names begin with a protocol");
        assert!(
            unknown.contains("`tenant`") && unknown.contains("`HTTP/1.1, head only, stranger, one address`"),
            "{unknown}"
        );
    }
}
