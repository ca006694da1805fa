//! The labels that a program gives all metrics of a database.
//!
//! Concurrency: none; plain data.

use metrics::Label;

/// Labels that come before those of each metric.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnLabels(Vec<Label>);

impl OwnLabels {
    pub(crate) fn add(&mut self, name: &str, text: &str) {
        self.0.push(label(name, text));
    }

    /// These labels, and then `others`.
    pub(crate) fn and<'a>(&self, others: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Label> {
        let own = self.0.iter().cloned();
        own.chain(others.map(|(name, text)| label(name, text)))
            .collect()
    }
}

fn label(name: &str, text: &str) -> Label {
    Label::new(name.to_owned(), text.to_owned())
}
