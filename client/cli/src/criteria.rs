//! The options for criteria: `--where` of finds, `--if` of writes.
//!
//! Owns the options. How criteria are typed is the API's, and what they mean is for the nodes to say.

use quorate_client::api::{TypedCriteria, typed_criteria};

/// What is to be found.
#[derive(Debug, clap::Args)]
pub struct Where {
    /// Only where this holds: `FIELD OP VALUE`, or criteria in JSON; may be given several times.
    ///
    /// FIELD is a path like customer.name, or one of $key $cas $version $create_revision $mod_revision. OP is one of eq neq
    /// lt lte gt gte in nin between exists nexists contains ncontains starts ends like; exists and nexists take no VALUE.
    /// VALUE is JSON, or a word, which is taken as a string; a list like ["a","b"] for in, nin and between. {"now":true} is
    /// the time. In JSON: one criterion, or a list of them, also with any, all and not.
    #[arg(short = 'w', long = "where", value_name = "CRITERIA", value_parser = typed_criteria)]
    matching: Vec<TypedCriteria>,
}

impl Where {
    /// One by one, each as JSON.
    pub fn iter(&self) -> impl Iterator<Item = &String> {
        self.matching.iter().flat_map(|TypedCriteria(list)| list)
    }
}

/// Conditions of a write.
#[derive(Debug, clap::Args)]
pub struct Only {
    /// Only while this holds: `FIELD OP VALUE`, or criteria in JSON, as `quorate find --where`; may be given several times.
    #[arg(long = "if", value_name = "CRITERIA", value_parser = typed_criteria)]
    only_if: Vec<TypedCriteria>,
}

impl Only {
    /// One by one, each as JSON.
    pub fn iter(&self) -> impl Iterator<Item = &String> {
        self.only_if.iter().flat_map(|TypedCriteria(list)| list)
    }
}
