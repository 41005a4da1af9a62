//! The waves that a run is asked for, by how their names begin, and the operations that are asked for in them.
//!
//! Owns the arguments that ask for them. Never carries one out.

use std::collections::BTreeSet;

use super::operations::Operation;
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
pub struct Selection {
    /// How their names begin.
    begins: Vec<String>,
    /// The operations that they are about; `None` where they are about all.
    operations: Option<BTreeSet<(Way, String)>>,
}

impl Selection {
    /// Selects all waves whose names begin with one of these, and of each no other operations than these; all of them where none is named.
    /// `known` are all names of operations by each protocol. An error tells what is not known, or goes by no protocol of these waves.
    pub fn of(begins: &[&str], operations: &[String], known: &BTreeSet<(Way, String)>) -> Result<Self, String> {
        // The names are the same whatever can be asked for.
        let waves = all(&[]);
        if let Some(none) = begins.iter().find(|begin| !waves.iter().any(|wave| wave.name.starts_with(**begin))) {
            return Err(format!("no name of a wave begins with `{none}`; one name is `{}`", waves[0].name));
        }
        let begins = begins.iter().map(|begin| (*begin).to_owned()).collect();
        let (every, mut selected) = (Self { begins, operations: None }, BTreeSet::new());
        for name in operations {
            let by: Vec<_> = known.iter().filter(|(_, known)| known == name).cloned().collect();
            if by.is_empty() {
                let names: BTreeSet<_> = known.iter().map(|(_, name)| name.as_str()).collect();
                let names: Vec<_> = names.into_iter().collect();
                return Err(format!("there is no operation `{name}`; there are: {}", names.join(", ")));
            }
            if !by.iter().any(|(way, _)| every.count(*way) > 0) {
                return Err(format!("`{name}` goes by no protocol of the waves that are asked for"));
            }
            selected.extend(by);
        }
        let operations = if selected.is_empty() { None } else { Some(selected) };
        Ok(Self { operations, ..every })
    }

    /// Tells whether a wave is selected.
    pub fn has(&self, wave: &Wave) -> bool {
        self.begins.iter().any(|begin| wave.name.starts_with(begin.as_str()))
    }

    /// Leaves the operations of a wave that are selected.
    pub fn narrow(&self, wave: &mut Wave) {
        let Some(selected) = &self.operations else { return };
        wave.combinations.retain(|combination| {
            let Operation { way, name, .. } = &*combination.operation;
            selected.iter().any(|(by, selected)| by == way && selected == name)
        });
    }

    /// Counts the waves of a protocol that are selected; none where no operation goes by it that is.
    pub fn count(&self, way: Way) -> usize {
        match &self.operations {
            Some(selected) if !selected.iter().any(|(by, _)| *by == way) => 0,
            _ => all(&[]).iter().filter(|wave| wave.way == way && self.has(wave)).count(),
        }
    }

    /// Tells whether all waves of a protocol are selected, with all operations.
    pub fn is_whole(&self, way: Way) -> bool {
        self.operations.is_none() && all(&[]).iter().filter(|wave| wave.way == way).all(|wave| self.has(wave))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use cluster_harness::http::Request;

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
        let of = |begins: &[&str]| Selection::of(begins, &[], &BTreeSet::new()).expect("there are such waves");
        let (every, none) = ((48, true), (0, false));
        assert_eq!(counts(&of(&[""])), [every; 4]);
        assert_eq!(counts(&of(&[])), [none; 4]);
        assert_eq!(counts(&of(&["HTTP/2"])), [none, every, none, none]);
        let narrow = "HTTP/1.1, cheapest bytes for most work, tenant";
        assert_eq!(counts(&of(&[narrow])), [(2, false), none, none, none]);
        // What two of them name is selected once.
        assert_eq!(counts(&of(&[narrow, "HTTP/1.1, cheapest", "gRPC"])), [(6, false), none, every, none]);
        let unknown = Selection::of(&["gRPC", "tenant"], &[], &BTreeSet::new());
        let unknown = unknown.expect_err("names begin with a protocol");
        assert!(
            unknown.contains("`tenant`") && unknown.contains("`HTTP/1.1, head only, stranger, one address`"),
            "{unknown}"
        );
    }

    fn operation(way: Way, name: &str) -> Arc<Operation> {
        let (request, name) = (Request::get("/"), name.to_owned());
        let dear = request.clone();
        Arc::new(Operation { way, name, request, dear, lasts: false, goes_on: false, holds: false })
    }

    #[test]
    fn waves_are_about_the_operations_that_are_asked_for_by_each_of_their_protocols() {
        let asked = [(Way::Http1, "post /v1/find"), (Way::Http1, "post /v1/count"), (Way::Http2, "post /v1/find")];
        let known = asked.map(|(way, name)| (way, name.to_owned())).into_iter().collect();
        let of = |begins: &[&str], name: &str| Selection::of(begins, &[name.to_owned()], &known);
        let find = of(&[""], "post /v1/find").expect("there is one");
        assert_eq!(counts(&find), [(48, false), (48, false), (0, false), (0, false)]);
        let count = of(&["HTTP/1.1, repeated"], "post /v1/count").expect("there is one");
        assert_eq!(counts(&count), [(6, false), (0, false), (0, false), (0, false)]);
        let mut waves = all(&asked.map(|(way, name)| operation(way, name)));
        waves.iter_mut().for_each(|wave| count.narrow(wave));
        for wave in waves {
            let names: Vec<_> = wave.combinations.iter().map(|one| one.operation.name.as_str()).collect();
            let left: &[&str] = if wave.way == Way::Http1 { &["post /v1/count"] } else { &[] };
            assert_eq!(names, left, "{}", wave.name);
        }
        let unknown = of(&[""], "find").expect_err("a name has a method");
        assert_eq!(unknown, "there is no operation `find`; there are: post /v1/count, post /v1/find");
        let elsewhere = of(&["HTTP/2", "gRPC"], "post /v1/count").expect_err("it goes by HTTP/1.1");
        assert!(elsewhere.contains("`post /v1/count`"), "{elsewhere}");
    }
}
