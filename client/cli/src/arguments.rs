//! Names of a command's arguments.
//!
//! Owns the way from a place in a request, as a node names it (`query:revision`, `path:session`, `/cron`), to the argument that it came
//! from. A place below an argument, as in the JSON that was typed, stays as it is.

use clap::{ArgMatches, Command};

/// Fields of requests that have another name as a flag.
const OTHERWISE: [(&str, &str); 9] = [
    ("if-match", "cas"),
    ("if-none-match", "if-absent"),
    ("lock", "for"),
    ("lease", "for"),
    ("execute-at", "at"),
    ("id", "request-id"),
    ("token", "guard-token"),
    ("client-addr", "addr"),
    ("idempotency-key", "request-id"),
];

/// The arguments of a command.
#[derive(Debug, Default)]
pub struct Arguments {
    flags: Vec<String>,
    positions: Vec<String>,
}

impl Arguments {
    /// Those of the command that was typed.
    pub fn of(commands: &Command, typed: &ArgMatches) -> Self {
        let (mut command, mut typed) = (commands, typed);
        let mut all: Vec<_> = commands.get_arguments().collect();
        while let Some((name, below)) = typed.subcommand() {
            let Some(known) = command.find_subcommand(name) else { break };
            (command, typed) = (known, below);
            all.extend(known.get_arguments());
        }
        let positions = all.iter().filter(|argument| argument.is_positional());
        Self {
            positions: positions.map(|argument| argument.get_id().to_string()).collect(),
            // The key of an entry is no private key.
            flags: all
                .iter()
                .filter(|argument| argument.get_id() != "tls_key")
                .filter_map(|argument| argument.get_long().map(str::to_owned))
                .collect(),
        }
    }

    /// A node's fault about a place in the request, under the name of the argument that the place came from.
    pub fn named(&self, said: &str) -> String {
        let named = said.split_once(": ").and_then(|(place, rest)| Some(format!("{}: {rest}", self.name(place)?)));
        named.unwrap_or_else(|| said.to_owned())
    }

    fn name(&self, place: &str) -> Option<String> {
        let in_request = ["query:", "header:", "path:"].iter().find_map(|kind| place.strip_prefix(kind));
        let field = in_request.or_else(|| place.strip_prefix('/').filter(|field| !field.contains('/')))?;
        let field = field.to_lowercase().replace('_', "-");
        let short = field.strip_suffix("-ms").unwrap_or(&field);
        let has = |name: &str| self.flags.iter().any(|flag| flag == name).then(|| format!("--{name}"));
        let is_position = self.positions.iter().any(|position| position.replace('_', "-") == short);
        let position = is_position.then(|| short.to_uppercase());
        let otherwise = || OTHERWISE.iter().find_map(|(known, flag)| (*known == short).then(|| has(flag))?);
        // Parts of a URL mean nothing to who typed none; a field of a body may stand in the JSON that was typed.
        position.or_else(|| has(short)).or_else(otherwise).or_else(|| in_request.is_some().then(|| short.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str, text: &str) -> String {
        let commands = crate::commands();
        let typed = commands.clone().try_get_matches_from(line.split(' ')).unwrap_or_else(|error| panic!("{error}"));
        Arguments::of(&commands, &typed).named(text)
    }

    #[test]
    fn places_of_a_request_become_arguments() {
        for (line, text, expected) in [
            (
                "quorate get k --revision 9",
                "query:revision: revision 9 does not exist",
                "--revision: revision 9 does not exist",
            ),
            ("quorate session show x", "path:session: must be a number", "session: must be a number"),
            ("quorate session show x", "path:id: must be a number", "ID: must be a number"),
            ("quorate task schedule q 1 --cron x", "/cron: no pattern", "--cron: no pattern"),
            ("quorate entry lock k --for 1s", "/lock_ms: too short", "--for: too short"),
            ("quorate put k 1 --cas 7", "header:If-Match: no cas", "--cas: no cas"),
            ("quorate put k 1", "/value/a: wants a number", "/value/a: wants a number"),
            ("quorate txn -", "/then: missing", "/then: missing"),
            ("quorate put k 1", "`k` already exists", "`k` already exists"),
        ] {
            assert_eq!(said(line, text), expected, "{line}");
        }
    }
}
