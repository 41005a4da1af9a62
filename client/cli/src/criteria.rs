//! The options for criteria: `--where` of finds, `--if` of writes.
//!
//! Owns the options. How criteria are typed is the API's, and what they mean is for the nodes to say.

use quorate_client::api::{TypedCriteria, typed_criteria};

/// Operators as other languages write them.
const SIGNS: [(&str, &str); 7] =
    [("=", "eq"), ("==", "eq"), ("!=", "neq"), ("<", "lt"), ("<=", "lte"), (">", "gt"), (">=", "gte")];

/// Criteria as they are typed here: as the API takes them, and with signs.
fn criteria(text: &str) -> Result<TypedCriteria, String> {
    let with_name = || {
        let (field, rest) = text.trim_start().split_once(char::is_whitespace)?;
        let (sign, value) = rest.trim_start().split_once(char::is_whitespace)?;
        let (_, name) = SIGNS.iter().find(|(known, _)| *known == sign)?;
        (!field.starts_with(['{', '['])).then(|| format!("{field} {name} {value}"))
    };
    typed_criteria(&with_name().unwrap_or_else(|| text.to_owned()))
}

/// What is to be found.
#[derive(Debug, clap::Args)]
pub struct Where {
    /// Only where this holds: `FIELD OP VALUE`, or criteria in JSON; may be given several times.
    ///
    /// FIELD is a path like customer.name, or one of $key $cas $version $create_revision $mod_revision. OP is one of eq neq
    /// lt lte gt gte in nin between exists nexists contains ncontains starts ends like; exists and nexists take no VALUE. The signs
    /// = != < <= > >= stand for the first six.
    /// VALUE is JSON, or a word, which is taken as a string; a list like ["a","b"] for in, nin and between. {"now":true} is
    /// the time. In JSON: one criterion, or a list of them, also with any, all and not.
    #[arg(short = 'w', long = "where", value_name = "CRITERIA", value_parser = criteria)]
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
    #[arg(long = "if", value_name = "CRITERIA", value_parser = criteria)]
    only_if: Vec<TypedCriteria>,
}

impl Only {
    /// One by one, each as JSON.
    pub fn iter(&self) -> impl Iterator<Item = &String> {
        self.only_if.iter().flat_map(|TypedCriteria(list)| list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_stand_for_operators() {
        for (typed, meant) in
            [("a = paid", "a eq paid"), ("a  >=  5", "a gte 5"), ("a != \"x = y\"", "a neq \"x = y\"")]
        {
            assert_eq!(
                criteria(typed).map(|TypedCriteria(list)| list),
                criteria(meant).map(|TypedCriteria(list)| list)
            );
        }
        let json = r#"{"field":"a", "op":"eq", "value":" = "}"#;
        assert_eq!(criteria(json).map(|TypedCriteria(list)| list), Ok(vec![json.to_owned()]));
        assert!(criteria("a = ").is_err() && criteria("a ~ 5").is_err());
    }
}
