//! Runs the crossing for as long as it is told to, half of that in runs of large states: `crossing [--minutes N | --runs N] [--seed S]`. Without a seed it draws one,
//! and says which. Ends with 1 where a run failed or a pair of the table was not met; of so many runs pairs are not asked for.
//!
//! `crossing --mutants` looks for each bug on purpose instead, `crossing --mutant NAME` for one and tells how it was found; both
//! need a build with debug assertions.
//!
//! `crossing --scenes` applies the dearest commands, for `scripts/instructions`, and prints for each of them how many bytes it takes of the bound
//! of a batch, and its scene.

use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use quorate_crossing::dearest::{self, SCENES};
use quorate_crossing::{Kind, hunt};
use quorate_machine::mutants::Mutant;

/// What follows an option of the command line, if it is given.
fn given(name: &str) -> Result<Option<String>, String> {
    let args: Vec<String> = std::env::args().collect();
    let Some(at) = args.iter().position(|arg| arg == name) else { return Ok(None) };
    args.get(at + 1).cloned().map(Some).ok_or_else(|| format!("{name} needs a value"))
}

/// A number that is given.
fn number<T: std::str::FromStr>(name: &str) -> Result<Option<T>, String> {
    let given = given(name)?;
    given.map(|text| text.parse().map_err(|_| format!("{name} {text}: not a number"))).transpose()
}

#[expect(clippy::disallowed_methods, reason = "it bounds how long it takes, and draws a seed")]
fn explored(seed: Option<u64>) -> Result<bool, String> {
    let drawn = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs());
    let seed = seed.unwrap_or(drawn);
    let (minutes, runs_max) = (number("--minutes")?.unwrap_or(1.0), number::<u64>("--runs")?);
    println!("seed {seed}");
    let (start, length) = (Instant::now(), Duration::from_secs_f64(minutes * 60.0));
    let goes_on = |runs: u64, part: u32| match runs_max {
        Some(most) => runs < most,
        None => start.elapsed() < length / 2 * part,
    };
    let mut explored = quorate_crossing::explore(Kind::Crossing, seed, |runs, _| goes_on(runs, 1));
    let grouped = quorate_crossing::explore(Kind::Groupings, seed, |runs, _| goes_on(runs, 2));
    println!(
        "{} groups of entries in {} commands: {:?}",
        grouped.met.groups, grouped.met.commands, grouped.met.reached
    );
    explored.failures.extend(grouped.failures);
    let met = explored.met;
    println!("{}", met.pairs.table());
    let a_minute = met.commands as f64 * 60.0 / start.elapsed().as_secs_f64();
    println!("{} commands, {a_minute:.0} a minute", met.commands);
    let (missing, impossible) = (met.pairs.missing(), met.pairs.impossible());
    missing.iter().for_each(|(kind, state)| println!("not met: {kind} × {state}"));
    impossible.iter().for_each(|(kind, state)| println!("met, and said not to be: {kind} × {state}"));
    explored.failures.iter().for_each(|failure| println!("\n{failure}"));
    Ok((missing.is_empty() || runs_max.is_some()) && impossible.is_empty() && explored.failures.is_empty())
}

/// Looks for mutants: for one, or for all.
fn hunted(one: Option<&str>, seed: u64) -> Result<bool, String> {
    if !cfg!(debug_assertions) {
        return Err("mutants need a build with debug assertions".into());
    }
    let all = Mutant::OF_MACHINE.iter().copied();
    let chosen: Vec<_> = all.clone().filter(|mutant| one.is_none_or(|one| one == mutant.name())).collect();
    if chosen.is_empty() {
        let names: Vec<_> = all.map(Mutant::name).collect();
        return Err(format!("there is no such mutant; there are {names:?}"));
    }
    let mut all = Vec::new();
    for mutant in chosen {
        let hunted = hunt::hunt(mutant, seed);
        match &hunted.found {
            Some((steps, words)) if one.is_some() => println!("{steps} steps:\n{words}\n"),
            Some((_, words)) => {
                let gist = words.rsplit_once("\n=> ").map_or("", |(_, gist)| gist).lines().next().unwrap_or_default();
                println!("{mutant}: {gist:.200}");
            }
            None => println!("{mutant}: not found"),
        }
        all.push(hunted);
    }
    println!("\n{}", hunt::table(&all));
    Ok(all.iter().all(|hunted| hunted.found.is_some()))
}

/// Makes the state of each scene, and applies its commands.
fn play_scenes() {
    for scene in SCENES {
        let mut store = (scene.store)();
        for action in (scene.commands)(&store) {
            let (_, taken) = dearest::apply_counted(&mut store, action);
            println!("{taken} {}", scene.name);
        }
    }
}

fn done() -> Result<bool, String> {
    let has = |name: &str| std::env::args().any(|arg| arg == name);
    if has("--scenes") {
        play_scenes();
        return Ok(true);
    }
    let (seed, one) = (number("--seed")?, given("--mutant")?);
    match one.is_some() || has("--mutants") {
        true => hunted(one.as_deref(), seed.unwrap_or(1)),
        false => explored(seed),
    }
}

fn main() -> ExitCode {
    match done() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(words) => {
            println!("{words}");
            ExitCode::FAILURE
        }
    }
}
