//! Circles of imports.
//!
//! Owns finding them. Never knows what a file is.

use std::collections::{BTreeMap, BTreeSet};

/// The files that each file imports.
pub type Imports<'m> = BTreeMap<&'m str, BTreeSet<&'m str>>;

/// Sets of files that all import each other, directly or through others.
pub fn circles<'m>(imports: &Imports<'m>) -> BTreeSet<BTreeSet<&'m str>> {
    let left = without_ends(imports);
    let reached: Imports<'m> = left.keys().copied().map(|file| (file, reached_from(&left, file))).collect();
    let leads_to = |file: &str, other: &str| reached.get(file).is_some_and(|files| files.contains(other));
    let mut circles = BTreeSet::new();
    for (file, others) in &reached {
        let circle: BTreeSet<&'m str> = others.iter().copied().filter(|other| leads_to(other, file)).collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles
}

/// The files that are in circles or lead to one. Most graphs have few, and what follows costs as many steps as there are, squared.
fn without_ends<'m>(imports: &Imports<'m>) -> Imports<'m> {
    let mut left = imports.clone();
    loop {
        let files: BTreeSet<&'m str> = left.keys().copied().collect();
        left.retain(|_, imported| {
            imported.retain(|file| files.contains(file));
            !imported.is_empty()
        });
        if left.len() == files.len() {
            return left;
        }
    }
}

fn reached_from<'m>(imports: &Imports<'m>, from: &'m str) -> BTreeSet<&'m str> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(file) = open.pop() {
        for next in imports.get(file).into_iter().flatten().copied() {
            if reached.insert(next) {
                open.push(next);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found_and_what_leads_to_them_is_not_part_of_one() {
        let imports: Imports<'_> = [
            ("to", vec!["a", "end"]),
            ("a", vec!["b"]),
            ("b", vec!["c", "end"]),
            ("c", vec!["a", "between"]),
            ("between", vec!["x"]),
            ("x", vec!["y"]),
            ("y", vec!["x"]),
        ]
        .into_iter()
        .map(|(file, imported)| (file, imported.into_iter().collect()))
        .collect();
        let found: Vec<Vec<&str>> = circles(&imports).into_iter().map(|circle| circle.into_iter().collect()).collect();
        assert_eq!(found, [vec!["a", "b", "c"], vec!["x", "y"]]);
    }
}
