//! Criteria as they are typed: `--where` of finds, `--if` of writes.
//!
//! Owns the options, the short form and its errors. What criteria mean is for the nodes to say.

use quorate_client::api::typed_criteria;

/// What is to be found.
#[derive(Debug, clap::Args)]
pub struct Where {
    /// Only where this holds: `FIELD OP VALUE`, or criteria in JSON; may be given several times.
    ///
    /// FIELD is a path like customer.name, or one of $key $cas $version $create_revision $mod_revision. OP is one of eq neq
    /// lt lte gt gte in nin between exists nexists contains ncontains starts ends like; exists and nexists take no VALUE.
    /// VALUE is JSON, or a word, which is taken as a string; a list like ["a","b"] for in, nin and between. {"now":true} is
    /// the time. In JSON: one criterion, or a list of them, also with any, all and not.
    #[arg(long = "where", value_name = "CRITERIA", value_parser = criteria)]
    matching: Vec<Criteria>,
}

impl Where {
    /// One by one, each as JSON.
    pub fn iter(&self) -> impl Iterator<Item = &String> {
        self.matching.iter().flat_map(|Criteria(list)| list)
    }
}

/// Conditions of a write.
#[derive(Debug, clap::Args)]
pub struct Only {
    /// Only while this holds: `FIELD OP VALUE`, or criteria in JSON, as `quorate find --where`; may be given several times.
    #[arg(long = "if", value_name = "CRITERIA", value_parser = criteria)]
    only_if: Vec<Criteria>,
}

impl Only {
    /// One by one, each as JSON.
    pub fn iter(&self) -> impl Iterator<Item = &String> {
        self.only_if.iter().flat_map(|Criteria(list)| list)
    }
}

/// What was typed, as JSON as the API takes it: one criterion or several.
#[derive(Debug, Clone, PartialEq)]
pub struct Criteria(pub Vec<String>);

/// JSON where it begins like it, else `FIELD OP VALUE`.
pub fn criteria(text: &str) -> Result<Criteria, String> {
    typed_criteria(text).map(Criteria)
}

#[cfg(test)]
mod tests {
    use quorate_client::api::{Criterion, Operator};

    use super::*;

    /// What the API is sent is what its types say.
    fn parsed(text: &str) -> Vec<Criterion> {
        let Criteria(list) = criteria(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        list.iter().map(|one| serde_json::from_str(one).expect("a criterion")).collect()
    }

    #[test]
    fn the_short_form_takes_json_or_a_word() {
        let one = |field: &str, op, value: serde_json::Value| vec![Criterion::new(field, op, value)];
        assert_eq!(parsed("status eq pending"), one("status", Operator::Eq, "pending".into()));
        assert_eq!(parsed(" status  eq \"two words\" "), one("status", Operator::Eq, "two words".into()));
        assert_eq!(parsed("a.b gte 1.5"), one("a.b", Operator::Gte, serde_json::json!(1.5)));
        assert_eq!(parsed("a eq true"), one("a", Operator::Eq, true.into()));
        assert_eq!(parsed("a eq \"true\""), one("a", Operator::Eq, "true".into()));
        assert_eq!(parsed("a in [1, 2]"), one("a", Operator::In, serde_json::json!([1, 2])));
        assert_eq!(parsed("due lt {\"now\":true}"), one("due", Operator::Lt, serde_json::json!({"now": true})));
        assert_eq!(parsed("owner nexists"), vec![Criterion::exists("owner", false)]);
        assert_eq!(parsed("$cas eq \"7\""), one("$cas", Operator::Eq, "7".into()));
    }

    #[test]
    fn json_may_be_one_criterion_or_a_list() {
        let plain = Criterion::new("a", Operator::Eq, 1);
        assert_eq!(parsed(r#"{"field":"a","op":"eq","value":1}"#), vec![plain.clone()]);
        let list = parsed(r#"[{"field":"a","op":"eq","value":1},{"not":{"any":[{"field":"b","op":"exists"}]}}]"#);
        assert_eq!(list, [plain, !Criterion::any([Criterion::exists("b", true)])]);
        // Numbers go as they are written.
        assert_eq!(criteria("a eq 1e2"), Ok(Criteria(vec![r#"{"field":"a","op":"eq","value":1e2}"#.into()])));
    }

    #[test]
    fn what_is_wrong_with_the_short_form_is_said() {
        for (text, said) in [
            ("", "expected FIELD OP VALUE"),
            ("status", "`status` alone says nothing"),
            ("status = pending", "`=` is no operator; there are: eq neq"),
            ("status eq", "`eq` takes a value"),
            ("status exists yes", "`exists` takes no value"),
            ("status eq two words", "write a text in quotes: `\"two words\"`"),
            ("status eq \"open", "begins like JSON and is none"),
            ("status in a,b", "takes a list"),
            ("[{]", "begins like JSON and is none"),
            ("{\"a\"", "begins like JSON and is none"),
        ] {
            let error = criteria(text).expect_err(text);
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
