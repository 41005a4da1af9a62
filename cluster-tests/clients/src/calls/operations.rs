//! Operations and transactions as the API writes them, put together with what the client has for them.

use std::time::Duration;

use quorate_client::api::{self, OpKind, TxnStep};
use quorate_client::{Op, Step, Txn, Value};
use serde_json::value::RawValue;

use super::With;
use crate::failure::Failure;

/// One operation.
pub fn op(op: api::Op) -> Result<Op, Failure> {
    let made = match (op.op, &op.value, &op.patch, op.lock_ms) {
        (OpKind::Get, None, None, None) => Op::get(op.key),
        (OpKind::Upsert, Some(value), None, None) => Op::put(op.key, text(&value.0)),
        (OpKind::Insert, Some(value), None, None) => Op::insert(op.key, text(&value.0)),
        (OpKind::Replace, Some(value), None, None) => Op::replace(op.key, text(&value.0)),
        (OpKind::Update, None, Some(patch), None) => Op::patch(op.key, text(&patch.0)),
        (OpKind::Remove, None, None, None) => Op::remove(op.key),
        (OpKind::Lock, None, None, Some(ms)) => Op::lock_entry(op.key, Duration::from_millis(ms)),
        (kind, ..) => return Err(Failure::Suite(format!("`{kind:?}` with these arguments has no form here"))),
    };
    let cas = op.cas.map(|cas| cas.parse::<api::Cas>()).transpose();
    let cas = cas.map_err(|error| Failure::Suite(error.to_string()))?;
    let criteria: Vec<Box<RawValue>> = match &op.condition {
        Some(list) => serde_json::from_str(list.0.get()).map_err(|error| Failure::Suite(error.to_string()))?,
        None => Vec::new(),
    };
    Ok(made
        .with(cas, |op, cas| op.cas(cas))
        .with_each(&criteria, |op, criterion| op.only_if_json(criterion.get()))
        .with(op.ttl_ms, |op, ms| op.ttl(Duration::from_millis(ms)))
        .with(op.session, |op, session| op.session(session))
        .with(op.guard, |op, guard| op.guarded_by(guard))
        .with_if(op.prev, |op| op.prev()))
}

/// The checks and steps of a transaction, or of one in another.
pub fn txn<C>(
    txn: Txn<C>,
    checks: Vec<api::TxnCheck>,
    then: Vec<TxnStep>,
    otherwise: Vec<TxnStep>,
) -> Result<Txn<C>, Failure> {
    let txn = checks.into_iter().try_fold(txn, check)?;
    let txn = then.into_iter().try_fold(txn, |txn, one| Ok::<_, Failure>(txn.then(step(one)?)))?;
    otherwise.into_iter().try_fold(txn, |txn, one| Ok(txn.otherwise(step(one)?)))
}

fn check<C>(txn: Txn<C>, check: api::TxnCheck) -> Result<Txn<C>, Failure> {
    let suite = |why: String| Failure::Suite(why);
    let when = txn.when(check.key);
    match (check.cas, check.exists, check.condition) {
        (Some(cas), None, None) => Ok(when.cas(cas.parse().map_err(|error: api::CasError| suite(error.to_string()))?)),
        (None, Some(true), None) => Ok(when.exists()),
        (None, Some(false), None) => Ok(when.absent()),
        (None, None, Some(criteria)) => {
            let criteria = criteria.iter().map(|criterion| serde_json::from_str::<api::Criterion>(criterion.0.get()));
            let criteria = criteria.collect::<Result<Vec<_>, _>>().map_err(|error| suite(error.to_string()))?;
            Ok(when.criteria(criteria))
        }
        _ => Err(suite("a check says one thing of its key".to_owned())),
    }
}

fn step(one: TxnStep) -> Result<Step, Failure> {
    match one {
        TxnStep::Op(one) => Ok(op(*one)?.into()),
        TxnStep::Txn(block) => Ok(txn(Txn::new(), block.checks, block.then, block.otherwise)?.into()),
    }
}

fn text(json: &RawValue) -> Value {
    Value::json_text(json.get().to_owned())
}
