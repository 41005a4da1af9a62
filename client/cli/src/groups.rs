//! The commands in groups, as the help of `quorate` shows them.
//!
//! Owns which group a command is in. A test of `main` finds a command that is in none.

use std::fmt::Write;

use clap::Command;

/// Heading, and commands in the order of their use.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Entry commands",
        &[
            "get", "put", "insert", "replace", "cas", "patch", "update", "edit", "delete", "touch", "entry", "list",
            "watch", "history", "diff", "revert", "request",
        ],
    ),
    (
        "Document commands",
        &[
            "find",
            "count",
            "claim",
            "update-where",
            "delete-where",
            "bulk",
            "txn",
            "load",
            "export",
            "collection",
            "sequence",
        ],
    ),
    ("Coordination commands", &["lock", "elect", "election", "session", "barrier", "latch", "task"]),
    ("Access commands", &["whoami", "user", "role", "token", "quota", "audit"]),
    (
        "Cluster commands",
        &["status", "top", "wait-ready", "member", "leader", "node", "backup", "support-bundle", "bench"],
    ),
    ("Other commands", &["context", "shell", "mcp", "completions", "man", "help"]),
];

/// The command with a help that shows its commands in groups.
pub fn grouped(command: Command) -> Command {
    let about = |name: &str| {
        let known = command.get_subcommands().find(|below| below.get_name() == name);
        known.and_then(Command::get_about).map_or_else(|| "Show the help of a command".to_owned(), ToString::to_string)
    };
    let mut template = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (heading, names) in GROUPS {
        write!(template, "\n{heading}:\n").expect("a string takes everything");
        for &name in names {
            writeln!(template, "  {name:<16}{}", about(name)).expect("a string takes everything");
        }
    }
    template.push_str("\nOptions:\n{options}{after-help}");
    command.help_template(template)
}

/// All commands that are in a group, once for each.
#[cfg(test)]
pub fn names() -> Vec<&'static str> {
    GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect()
}
