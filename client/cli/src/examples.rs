//! Examples of the commands whose help has no other text behind it.
//!
//! Owns the table. That every command has an example, and that the command line takes each, is tested with `main`.

use clap::Command;

/// Command, and what is typed.
const EXAMPLES: &[(&str, &str)] = &[
    ("insert", "quorate insert orders/o1 '{\"status\":\"new\"}'"),
    ("replace", "quorate replace orders/o1 '{\"status\":\"paid\"}' --if 'status eq new'"),
    ("delete", "quorate delete orders/o1 --cas 17"),
    ("touch", "quorate touch session/7 --ttl 30s"),
    ("request", "quorate request 5f0c2a7e"),
    ("entry get-and-lock", "quorate entry get-and-lock orders/o42 --for 20s"),
    ("entry extend", "quorate entry extend orders/o42 17 --for 30s"),
    ("entry unlock", "quorate entry unlock orders/o42 17"),
    ("collection list", "quorate collection list"),
    ("collection show", "quorate collection show orders -o yaml"),
    ("collection delete", "quorate collection delete orders --cas 17"),
    ("sequence show", "quorate sequence show invoices"),
    ("lock list", "quorate lock list -o table"),
    ("lock show", "quorate lock show nightly"),
    ("lock check", "quorate lock check nightly 17"),
    ("election list", "quorate election list"),
    ("election show", "quorate election show scheduler --raw"),
    ("election observe", "quorate election observe scheduler -o json"),
    ("election proclaim", "quorate election proclaim scheduler '\"10.0.0.7:9090\"' --term 17"),
    ("election resign", "quorate election resign scheduler --term 17"),
    ("session renew", "quorate session renew 17"),
    ("session keep-alive", "quorate session keep-alive 17"),
    ("session show", "quorate session show 17"),
    ("session end", "quorate session end 17"),
    ("session list", "quorate session list -o table"),
    ("barrier show", "quorate barrier show loaded"),
    ("latch count-down", "quorate latch count-down migrated --by 2"),
    ("latch wait", "quorate latch wait migrated --wait 5m"),
    ("latch show", "quorate latch show migrated"),
    ("latch delete", "quorate latch delete migrated"),
    ("task claim", "quorate task claim mail -n 10 --for 5m --wait 30s"),
    ("task extend", "quorate task extend mail welcome-7 17 --for 5m"),
    ("task complete", "quorate task complete mail welcome-7 17"),
    ("task fail", "quorate task fail mail welcome-7 17 --error 'no such address' --retry-in 1h"),
    ("task cancel", "quorate task cancel mail welcome-7"),
    ("task list", "quorate task list mail --state dead -o table"),
    ("task show", "quorate task show mail welcome-7"),
    ("task requeue", "quorate task requeue mail -n 100"),
    ("user delete", "quorate user delete app"),
    ("user list", "quorate user list"),
    ("user show", "quorate user show app"),
    ("role delete", "quorate role delete orders"),
    ("role list", "quorate role list -o table"),
    ("role show", "quorate role show orders"),
    ("token delete", "quorate token delete 0123456789abcdef"),
    ("token list", "quorate token list app"),
    ("audit", "quorate audit orders/o1 --from 4711"),
    ("whoami", "quorate whoami"),
    ("member list", "quorate member list"),
    ("member add", "quorate member add 4 10.0.0.4:7200 --promote"),
    ("member promote", "quorate member promote 4"),
    ("member demote", "quorate member demote 4 --dry-run"),
    ("member remove", "quorate member remove 3 --dry-run"),
    ("member replace", "quorate member replace 3 4"),
    ("member repair", "quorate member repair 3"),
    ("leader transfer", "quorate leader transfer 2"),
    ("wait-ready", "quorate wait-ready --any --timeout 1m"),
    ("status", "quorate status"),
    ("top", "quorate top --every 5s"),
    ("context list", "quorate context list"),
    ("context show", "quorate context show shop"),
    ("context use", "quorate context use shop"),
    ("context delete", "quorate context delete shop"),
    ("shell", "quorate --context shop shell"),
    ("man", "quorate man ~/.local/share/man/man1"),
];

/// The commands, with these examples.
pub fn with_examples(command: Command) -> Command {
    walk(command, "")
}

fn walk(command: Command, path: &str) -> Command {
    let example = EXAMPLES.iter().find(|(known, _)| *known == path).map(|(_, example)| *example);
    let command = match example.filter(|_| command.get_after_help().is_none()) {
        Some(example) => command.after_help(format!("Example:\n  {example}")),
        None => command,
    };
    command.mut_subcommands(|below| {
        let path = format!("{path} {}", below.get_name());
        walk(below, path.trim_start())
    })
}
