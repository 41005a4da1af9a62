//! What the API accepts, apply can do, and whatever reads what that left can read it: every route, with everything at its edges.

use std::time::Duration;

use parser_fuzzing::extremes::{NUMBERS, TEXTS, requests, value};
use parser_fuzzing::{api, panics};
use rand::RngExt;

use crate::seed::seeded;

/// For one answer, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(10);
/// Values that are drawn for each form of a request.
const DRAWN: usize = 12;

/// Judges a request; how many commands it became.
fn judge(request: &[u8]) -> usize {
    let mut commands = 0;
    let noted = panics::noting(|| commands = api::judge(request, PATIENCE));
    let shown = request[..request.len().min(600)].escape_ascii();
    assert!(noted.is_empty(), "{}\nafter {shown}", noted.join("\n"));
    commands
}

#[test]
fn what_the_door_accepts_can_be_applied_and_read() {
    let mut dice = seeded();
    let mut refused = Vec::new();
    for form in requests() {
        let plain = [("{\"n\":1.5e3}", "5", "a"), ("7", "100000", "*/5 * * * *"), ("0", "5", "2024-02-29T12:00:00Z")];
        let accepted = plain.map(|(value, number, text)| judge(&form.with(value, number, text))).iter().sum::<usize>();
        if accepted == 0 {
            refused.push(form);
        }
        for _ in 0..DRAWN {
            let (number, text) =
                (NUMBERS[dice.random_range(0..NUMBERS.len())], TEXTS[dice.random_range(0..TEXTS.len())]);
            judge(&form.with(&value(&mut dice), number, text));
        }
    }
    assert!(refused.is_empty(), "nothing that is put into these is accepted: {refused:#?}");
}

#[test]
fn every_number_can_be_put_into_every_place() {
    for form in requests() {
        for number in NUMBERS {
            judge(&form.with(&format!(r#"{{"n":{number},"v":{number},"a":{{"b":{number}}}}}"#), number, "a"));
        }
    }
}
