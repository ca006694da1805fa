//! JSON merge patches (RFC 7396).
//!
//! Concurrency: no state.

use serde_json::{Map, Value};

use crate::merge_operator::{MergeError, MergeOperator, Operands};

/// Applies JSON merge patches (RFC 7396): a patch is a JSON document whose members replace those of the value, and
/// whose nulls remove them. A missing value counts as `null`. Members of the result are sorted by name. Numbers are
/// integers of 64 bits or doubles, and others are rounded to doubles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonMergePatch;

impl MergeOperator for JsonMergePatch {
    fn name(&self) -> &'static str {
        "windrow.json_merge_patch"
    }

    fn full_merge(
        &self,
        _key: &[u8],
        base: Option<&[u8]>,
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<(), MergeError> {
        let mut document = base.map_or(Ok(Value::Null), |base| parse(base, "the value"))?;
        for operand in operands {
            apply(&mut document, parse(operand, "a patch")?);
        }
        write(&document, result)
    }

    fn partial_merge(
        &self,
        _key: &[u8],
        mut operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<bool, MergeError> {
        let mut patch = match operands.next() {
            Some(first) => parse(first, "a patch")?,
            None => return Ok(false),
        };
        for operand in operands {
            if !compose(&mut patch, parse(operand, "a patch")?) {
                return Ok(false);
            }
        }
        write(&patch, result).map(|()| true)
    }
}

fn parse(text: &[u8], what: &str) -> Result<Value, MergeError> {
    serde_json::from_slice(text)
        .map_err(|error| MergeError::new(format!("{what} is no JSON: {error}")))
}

fn write(document: &Value, result: &mut Vec<u8>) -> Result<(), MergeError> {
    serde_json::to_writer(result, document).map_err(|error| MergeError::new(error.to_string()))
}

/// Applies `patch` to `document`.
fn apply(document: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *document = patch;
        return;
    };
    if !document.is_object() {
        *document = Value::Object(Map::new());
    }
    let Value::Object(members) = document else {
        return;
    };
    for (name, value) in patch {
        if value.is_null() {
            members.remove(&name);
        } else {
            apply(members.entry(name).or_insert(Value::Null), value);
        }
    }
}

/// Makes `first` the patch that does what `first` and then `second` do. Returns whether one patch can: none can first
/// replace a member by something other than an object, and then patch it as an object.
fn compose(first: &mut Value, second: Value) -> bool {
    match (first, second) {
        (Value::Object(members), Value::Object(patch)) => {
            patch
                .into_iter()
                .all(|(name, value)| match members.get_mut(&name) {
                    Some(member) => compose(member, value),
                    None => {
                        members.insert(name, value);
                        true
                    }
                })
        }
        (_, Value::Object(_)) => false,
        (first, second) => {
            *first = second;
            true
        }
    }
}
