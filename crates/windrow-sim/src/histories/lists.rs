//! Lists: each shows the order of all writes to its key.

use super::graph::{Dependency, Graph};
use super::{Anomaly, History, Step};

/// Adds the dependencies of all lists to `graph`.
///
/// # Errors
/// `lost`: an element is not in its list; `incompatible order`: a list that was read is no beginning of the last one.
pub(super) fn check(history: &History<'_>, graph: &mut Graph<'_>) -> Result<(), Anomaly> {
    check_elements(history)?;
    let is_list = |key: &u64| !history.registers.contains(key);
    for list in history.last.iter().filter(|(key, _)| is_list(key)) {
        for pair in list.1.windows(2) {
            let writers = (history.writer(pair[0]), history.writer(pair[1]));
            if let (Some(from), Some(to)) = writers {
                graph.add(from, to, Dependency::WriteWrite);
            }
        }
    }
    for (index, key, list) in history.all_reads().filter(|(_, key, _)| is_list(key)) {
        let whole = history.last.get(&key).map_or(&[][..], Vec::as_slice);
        if !whole.starts_with(list) {
            return Err(Anomaly {
                name: "incompatible order",
                what: format!("transaction {index} reads {list:?} of key {key}: {whole:?}"),
            });
        }
        if let Some(from) = list.last().and_then(|element| history.writer(*element)) {
            graph.add(from, index, Dependency::WriteRead);
        }
        let next = whole.get(list.len());
        if let Some(to) = next.and_then(|element| history.writer(*element)) {
            graph.add(index, to, Dependency::ReadWrite);
        }
    }
    Ok(())
}

fn check_elements(history: &History<'_>) -> Result<(), Anomaly> {
    for (index, transaction) in history.transactions.iter().enumerate() {
        for step in &transaction.steps {
            let Step::Append(key, element) = step else {
                continue;
            };
            let list = history.last.get(key);
            if !list.is_some_and(|list| list.contains(element)) {
                return Err(Anomaly {
                    name: "lost",
                    what: format!("element {element} of transaction {index} is gone"),
                });
            }
        }
    }
    Ok(())
}
