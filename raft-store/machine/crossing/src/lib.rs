//! Features meet features: every command of the state machine in every state that its target can be in.
//!
//! Owns a generator of commands over a handful of names, the recomputation of every sum and cross-reference of the rows after
//! each of them, a naive model of what the core commands should answer, and the table of what met what. Tests only: what is
//! wrong is a panic that says so. Never part of a node.

#![allow(clippy::print_stdout, reason = "it tells what it met")]

pub mod check;
pub mod store;
