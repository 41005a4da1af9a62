//! Criteria: what must hold of an entry, as `if` of a write and as `where` of a search.
//!
//! Owns the types that stand in log commands, their checks and their bytes. Whether they hold is in
//! [`super::evaluate`], how they are written in JSON in [`super::read`].

use std::borrow::Cow;

use bincode::de::{Decode, Decoder};
use bincode::enc::{Encode, Encoder};
use bincode::error::{DecodeError, EncodeError};

use super::json::Json;
use super::like::{self, LikeError};
use super::number::Numeric;
use super::path::{Field, MetaField};
use super::time;
use crate::limits::{CRITERIA_DEPTH_MAX, CRITERIA_LIST_MAX, CRITERIA_TERMS_MAX};

/// Terms that must all hold. None: holds of everything.
///
/// Invariant: at most [`CRITERIA_TERMS_MAX`] terms in at most [`CRITERIA_DEPTH_MAX`] levels of groups, because both
/// ways to make one check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Criteria {
    terms: Vec<Term>,
}

/// One member of a criteria list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Term {
    /// A comparison.
    Predicate(Predicate),
    /// Holds where one of them does.
    Any(Vec<Term>),
    /// Holds where each of them does: for alternatives of several parts.
    All(Vec<Term>),
    /// Holds where it does not.
    Not(Box<Term>),
}

/// One comparison of a field.
#[derive(Debug, Clone, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct Predicate {
    pub(super) field: Field,
    pub(super) operator: Operator,
    pub(super) operand: Operand,
}

/// How a field is compared. What each means of which values is the table at [`Predicate::holds`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[expect(missing_docs, reason = "named as they are written")]
pub enum Operator {
    Eq,
    Neq,
    Lt,
    Lte,
    Gt,
    Gte,
    In,
    Nin,
    Between,
    Exists,
    Nexists,
    Contains,
    Ncontains,
    Starts,
    Ends,
    Like,
}

/// What a field is compared with.
#[derive(Debug, Clone, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub enum Operand {
    /// Nothing: `exists` and `nexists`.
    None,
    /// One value.
    One(Value),
    /// Several: `in` and `nin`; two for `between`.
    List(Vec<Value>),
}

/// A value to compare with.
#[derive(Debug, Clone, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub enum Value {
    /// As given.
    Json(Json<'static>),
    /// The wall clock of the batch, written `{"now":true}`: Unix milliseconds beside a number, a time beside a string
    /// in RFC 3339, of another type than anything else.
    Now,
    /// Bytes, written `{"base64":"…"}`: beside `$key` only, and for it the same as the text of these bytes where there is one.
    Name(Vec<u8>),
}

/// What is wrong with a predicate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PredicateError {
    /// The operand is not what the operator takes.
    #[error("`{operator}` takes {expected}")]
    Operand {
        /// As written.
        operator: &'static str,
        /// What it takes.
        expected: &'static str,
    },
    /// A list that is too long; holds how many.
    #[error("a list has at most {CRITERIA_LIST_MAX} values, this one has {0}")]
    LongList(usize),
    /// A pattern that is not one.
    #[error(transparent)]
    Like(#[from] LikeError),
    /// A value that this metadata never has.
    #[error("{field} is {kind}")]
    MetaKind {
        /// As written.
        field: &'static str,
        /// What it is.
        kind: &'static str,
    },
    /// Tokens are equal or not.
    #[error("$cas is opaque: it has no order and no parts")]
    OpaqueToken,
    /// Times are before each other or not.
    #[error("$expires_at is a time: it has no parts")]
    WholeTime,
}

/// What is wrong with a list of terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CriteriaError {
    /// Too many terms; holds how many.
    #[error("at most {CRITERIA_TERMS_MAX} predicates and groups, here are {0}")]
    TooMany(usize),
    /// Groups too deep in each other.
    #[error("`any`, `all` and `not` stand at most {CRITERIA_DEPTH_MAX} deep in each other")]
    TooDeep,
}

impl Criteria {
    /// Takes terms within the bounds.
    pub fn new(terms: Vec<Term>) -> Result<Self, CriteriaError> {
        // Depth first, and not by recursion without a bound.
        if terms.iter().any(|term| !term.fits(CRITERIA_DEPTH_MAX)) {
            return Err(CriteriaError::TooDeep);
        }
        let criteria = Self { terms };
        match criteria.count() {
            count if count > CRITERIA_TERMS_MAX => Err(CriteriaError::TooMany(count)),
            _ => Ok(criteria),
        }
    }

    /// How many predicates and groups there are.
    pub fn count(&self) -> usize {
        self.terms.iter().map(Term::count).sum()
    }

    /// The terms.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// Whether there are no terms.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether any term looks into the document, so that it must be parsed before they are evaluated.
    pub fn needs_document(&self) -> bool {
        self.terms.iter().any(Term::needs_document)
    }
}

impl Term {
    /// Whether it has at most so many levels of groups.
    fn fits(&self, levels: usize) -> bool {
        match (self, levels.checked_sub(1)) {
            (Self::Predicate(_), _) => true,
            (_, None) => false,
            (Self::Any(terms) | Self::All(terms), Some(levels)) => terms.iter().all(|term| term.fits(levels)),
            (Self::Not(term), Some(levels)) => term.fits(levels),
        }
    }

    fn count(&self) -> usize {
        match self {
            Self::Predicate(_) => 1,
            Self::Any(terms) | Self::All(terms) => 1 + terms.iter().map(Self::count).sum::<usize>(),
            Self::Not(term) => 1 + term.count(),
        }
    }

    fn needs_document(&self) -> bool {
        self.any(&|predicate| matches!(predicate.field, Field::Document(_)))
    }

    /// Whether one of its predicates is so.
    fn any(&self, is_so: &impl Fn(&Predicate) -> bool) -> bool {
        match self {
            Self::Predicate(predicate) => is_so(predicate),
            Self::Any(terms) | Self::All(terms) => terms.iter().any(|term| term.any(is_so)),
            Self::Not(term) => term.any(is_so),
        }
    }
}

impl Predicate {
    /// Takes parts that fit each other. Times beside `$expires_at` become the text that it has.
    pub fn new(field: Field, operator: Operator, operand: Operand) -> Result<Self, PredicateError> {
        operator.check(&operand)?;
        let operand = match field {
            Field::Meta(MetaField::ExpiresAt) => times(operator, operand)?,
            Field::Meta(meta) => {
                check_meta(meta, operator, &operand)?;
                operand
            }
            Field::Document(_) => operand,
        };
        Ok(Self { field, operator, operand })
    }

    /// The field.
    pub fn field(&self) -> &Field {
        &self.field
    }

    /// The operator.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// What it is compared with.
    pub fn operand(&self) -> &Operand {
        &self.operand
    }
}

impl Operand {
    /// The values in it.
    pub fn values(&self) -> &[Value] {
        match self {
            Self::None => &[],
            Self::One(value) => std::slice::from_ref(value),
            Self::List(values) => values,
        }
    }
}

impl Operator {
    /// As they are written.
    pub const NAMES: [(&'static str, Self); 16] = [
        ("eq", Self::Eq),
        ("neq", Self::Neq),
        ("lt", Self::Lt),
        ("lte", Self::Lte),
        ("gt", Self::Gt),
        ("gte", Self::Gte),
        ("in", Self::In),
        ("nin", Self::Nin),
        ("between", Self::Between),
        ("exists", Self::Exists),
        ("nexists", Self::Nexists),
        ("contains", Self::Contains),
        ("ncontains", Self::Ncontains),
        ("starts", Self::Starts),
        ("ends", Self::Ends),
        ("like", Self::Like),
    ];

    /// The operator of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, operator)| *operator)
    }

    /// As it is written.
    pub fn name(self) -> &'static str {
        let named = Self::NAMES.iter().find(|(_, operator)| *operator == self);
        named.map(|(name, _)| *name).expect("the table has all of them")
    }

    fn check(self, operand: &Operand) -> Result<(), PredicateError> {
        let expected = match (self, operand) {
            (Self::Eq | Self::Neq | Self::Contains | Self::Ncontains, Operand::One(_)) => return Ok(()),
            (Self::Eq | Self::Neq | Self::Contains | Self::Ncontains, _) => "one value",
            (Self::Lt | Self::Lte | Self::Gt | Self::Gte, Operand::One(value)) if value.has_order() => return Ok(()),
            (Self::Lt | Self::Lte | Self::Gt | Self::Gte, _) => "a number, a string or {\"now\":true}",
            (Self::In | Self::Nin, Operand::List(values)) if values.len() > CRITERIA_LIST_MAX => {
                return Err(PredicateError::LongList(values.len()));
            }
            (Self::In | Self::Nin, Operand::List(_)) => return Ok(()),
            (Self::In | Self::Nin, _) => "a list of values",
            (Self::Between, Operand::List(values)) if is_range(values) => return Ok(()),
            (Self::Between, _) => "a list of two numbers or two strings, either of which may be {\"now\":true}",
            (Self::Exists | Self::Nexists, Operand::None) => return Ok(()),
            (Self::Exists | Self::Nexists, _) => "no value",
            (Self::Like, Operand::One(Value::Json(Json::String(pattern)))) => return Ok(like::check(pattern)?),
            (Self::Starts | Self::Ends, Operand::One(Value::Json(Json::String(_)) | Value::Name(_))) => return Ok(()),
            (Self::Starts | Self::Ends | Self::Like, _) => "a string",
        };
        Err(PredicateError::Operand { operator: self.name(), expected })
    }
}

impl Value {
    fn has_order(&self) -> bool {
        matches!(self, Self::Now | Self::Name(_) | Self::Json(Json::Number(_) | Json::String(_)))
    }

    /// The name that it is; `None` of what is none.
    pub(super) fn name(&self) -> Option<&[u8]> {
        match self {
            Self::Json(Json::String(text)) => Some(text.as_bytes()),
            Self::Name(name) => Some(name),
            Self::Json(_) | Self::Now => None,
        }
    }
}

/// Whether these are the two ends of a range.
fn is_range(values: &[Value]) -> bool {
    let [low, high] = values else { return false };
    let differ = matches!((low, high), (Value::Json(low), Value::Json(high)) if low.kind() != high.kind());
    low.has_order() && high.has_order() && !differ
}

/// Refuses what could never match: metadata has known types.
fn check_meta(meta: MetaField, operator: Operator, operand: &Operand) -> Result<(), PredicateError> {
    use Operator::{Eq, Exists, In, Neq, Nexists, Nin};

    let is_token = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = |value: &Value| match (meta, value) {
        (MetaField::Key, Value::Json(Json::String(_)) | Value::Name(_)) | (MetaField::Cas, Value::Json(Json::Null)) => {
            true
        }
        (MetaField::Cas, Value::Json(Json::String(text))) => is_token(text),
        (MetaField::Version | MetaField::CreateRevision | MetaField::ModRevision, Value::Json(Json::Number(_)))
        | (MetaField::Exists | MetaField::Locked, Value::Json(Json::Bool(_))) => true,
        _ => false,
    };
    if meta == MetaField::Cas && !matches!(operator, Eq | Neq | In | Nin | Exists | Nexists) {
        return Err(PredicateError::OpaqueToken);
    }
    if operand.values().iter().all(fits) {
        return Ok(());
    }
    let kind = match meta {
        MetaField::Key => "a string, or bytes as {\"base64\":\"…\"}",
        MetaField::Cas => "a string of digits, or null while the entry is locked",
        MetaField::Version | MetaField::CreateRevision | MetaField::ModRevision => "a number",
        MetaField::Exists | MetaField::Locked => "true or false",
        MetaField::ExpiresAt => TIME,
    };
    Err(PredicateError::MetaKind { field: meta.name(), kind })
}

const TIME: &str = "a time of the years 0 to 9999: RFC 3339, Unix milliseconds or {\"now\":true}";

/// What `$expires_at` is compared with, as the text that it is. Part of a millisecond is left out, since it has none.
fn times(operator: Operator, operand: Operand) -> Result<Operand, PredicateError> {
    use Operator::{Contains, Ends, Like, Ncontains, Starts};

    if matches!(operator, Contains | Ncontains | Starts | Ends | Like) {
        return Err(PredicateError::WholeTime);
    }
    let read = |value: Value| -> Result<Value, PredicateError> {
        let no_time = PredicateError::MetaKind { field: MetaField::ExpiresAt.name(), kind: TIME };
        match value {
            Value::Now => Ok(Value::Now),
            Value::Json(json) => {
                let text = match &json {
                    Json::String(text) => time::parse(text).and_then(time::from_unix_nanos),
                    Json::Number(number) => match number.value() {
                        Numeric::Integer(ms) => i64::try_from(ms).ok().and_then(time::from_unix_ms),
                        Numeric::Float(_) => None,
                    },
                    _ => None,
                };
                let text = text.ok_or(no_time)?;
                Ok(Value::Json(Json::String(Cow::Owned(text))))
            }
            Value::Name(_) => Err(no_time),
        }
    };
    Ok(match operand {
        Operand::None => Operand::None,
        Operand::One(value) => Operand::One(read(value)?),
        Operand::List(values) => Operand::List(values.into_iter().map(read).collect::<Result<_, _>>()?),
    })
}

// By hand, since a derived decoder would follow a damaged record into any depth.

const PREDICATE: u8 = 0;
const ANY: u8 = 1;
const ALL: u8 = 2;
const NOT: u8 = 3;

impl Encode for Criteria {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        encode_terms(&self.terms, encoder)
    }
}

impl<Context> Decode<Context> for Criteria {
    fn decode<D: Decoder<Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let mut room = CRITERIA_TERMS_MAX;
        Ok(Self { terms: decode_terms(decoder, CRITERIA_DEPTH_MAX, &mut room)? })
    }
}

bincode::impl_borrow_decode!(Criteria);

fn encode_terms<E: Encoder>(terms: &[Term], encoder: &mut E) -> Result<(), EncodeError> {
    terms.len().encode(encoder)?;
    terms.iter().try_for_each(|term| encode_term(term, encoder))
}

fn encode_term<E: Encoder>(term: &Term, encoder: &mut E) -> Result<(), EncodeError> {
    match term {
        Term::Predicate(predicate) => {
            PREDICATE.encode(encoder)?;
            predicate.encode(encoder)
        }
        Term::Any(terms) => {
            ANY.encode(encoder)?;
            encode_terms(terms, encoder)
        }
        Term::All(terms) => {
            ALL.encode(encoder)?;
            encode_terms(terms, encoder)
        }
        Term::Not(term) => {
            NOT.encode(encoder)?;
            encode_term(term, encoder)
        }
    }
}

fn decode_terms<D: Decoder>(decoder: &mut D, levels: usize, room: &mut usize) -> Result<Vec<Term>, DecodeError> {
    let count = usize::decode(decoder)?;
    (0..count).map(|_| decode_term(decoder, levels, room)).collect()
}

/// A term with at most so many levels of groups, if there is room for another.
fn decode_term<D: Decoder>(decoder: &mut D, levels: usize, room: &mut usize) -> Result<Term, DecodeError> {
    *room = room.checked_sub(1).ok_or(DecodeError::Other("more terms than criteria may have"))?;
    let inner = || levels.checked_sub(1).ok_or(DecodeError::Other("groups deeper than criteria may have"));
    match u8::decode(decoder)? {
        PREDICATE => Predicate::decode(decoder).map(Term::Predicate),
        ANY => decode_terms(decoder, inner()?, room).map(Term::Any),
        ALL => decode_terms(decoder, inner()?, room).map(Term::All),
        NOT => decode_term(decoder, inner()?, room).map(|term| Term::Not(Box::new(term))),
        _ => Err(DecodeError::Other("an unknown kind of term")),
    }
}
