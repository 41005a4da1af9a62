//! Criteria as a collection understands them.
//!
//! Owns the conversion of what fields are compared with to the types that the fields are declared with, so that a time
//! in any offset, a number given as text, or `{"now":true}`, is compared as what the field holds.

use std::borrow::Cow;

use super::Rules;
use super::convert::{convert, wall_clock};
use super::field::FieldKind;
use crate::document::path::{Field, Path};
use crate::document::{Criteria, Json, Operand, Operator, Predicate, Term, Value};
use crate::entry::WallMillis;

impl Rules {
    /// The criteria with every value as the type of its field. What cannot become that stays as it is: it matches nothing
    /// there, or everything. Patterns and parts of strings are not converted, nor are elements of arrays.
    ///
    /// Terms keep their places, so a pointer to one is the same in both.
    pub fn converted<'c>(&self, criteria: &'c Criteria, wall: WallMillis) -> Cow<'c, Criteria> {
        let is_typed = |path: &Path| self.field(path).is_some_and(|rule| rule.kind != FieldKind::Any);
        if self.fields.is_empty() || !criteria.terms().iter().any(|term| names_field(term, &is_typed)) {
            return Cow::Borrowed(criteria);
        }
        let terms = criteria.terms().iter().map(|term| self.convert_term(term, wall)).collect();
        Cow::Owned(Criteria::new(terms).expect("as many terms, as deep, as there were"))
    }

    fn convert_term(&self, term: &Term, wall: WallMillis) -> Term {
        let all = |terms: &[Term]| terms.iter().map(|term| self.convert_term(term, wall)).collect();
        match term {
            Term::Predicate(predicate) => Term::Predicate(self.convert_predicate(predicate, wall)),
            Term::Any(terms) => Term::Any(all(terms)),
            Term::All(terms) => Term::All(all(terms)),
            Term::Not(term) => Term::Not(Box::new(self.convert_term(term, wall))),
        }
    }

    fn convert_predicate(&self, predicate: &Predicate, wall: WallMillis) -> Predicate {
        let kind = match predicate.field() {
            Field::Document(path) => self.field(path).map(|rule| rule.kind),
            Field::Meta(_) => None,
        };
        let Some(kind) = kind.filter(|_| compares_whole(predicate.operator())) else { return predicate.clone() };
        let operand = match predicate.operand() {
            Operand::None => Operand::None,
            Operand::One(value) => Operand::One(convert_value(kind, value, wall)),
            Operand::List(values) => {
                Operand::List(values.iter().map(|value| convert_value(kind, value, wall)).collect())
            }
        };
        // Where one end of a range can be converted and the other cannot, they do not fit each other any more.
        Predicate::new(predicate.field().clone(), predicate.operator(), operand).unwrap_or_else(|_| predicate.clone())
    }
}

fn names_field(term: &Term, is_typed: &impl Fn(&Path) -> bool) -> bool {
    match term {
        Term::Predicate(predicate) => matches!(predicate.field(), Field::Document(path) if is_typed(path)),
        Term::Any(terms) | Term::All(terms) => terms.iter().any(|term| names_field(term, is_typed)),
        Term::Not(term) => names_field(term, is_typed),
    }
}

/// Whether the operator compares the field with a value of its own type.
fn compares_whole(operator: Operator) -> bool {
    use Operator::{Between, Eq, Gt, Gte, In, Lt, Lte, Neq, Nin};

    matches!(operator, Eq | Neq | Lt | Lte | Gt | Gte | In | Nin | Between)
}

fn convert_value(kind: FieldKind, value: &Value, wall: WallMillis) -> Value {
    let converted = match value {
        Value::Now => wall_clock(kind, wall),
        Value::Json(Json::Null) | Value::Name(_) => None,
        Value::Json(json) => convert(kind, json).ok().flatten(),
    };
    converted.map_or_else(|| value.clone(), Value::Json)
}
