//! Merge operators that are written in Java.
//!
//! Concurrency: any thread calls an operator, also one of the engine.

use jni::objects::JObject;
use jni::{Env, jni_sig, jni_str};
use windrow::{MergeError, MergeOperator, Operands};

use crate::errors::Outcome;
use crate::functions::{Argument, Function, Returned};
use crate::packed;

/// An object of the interface `MergeOperator` of Java.
pub(crate) struct Operator {
    name: String,
    merge: Function,
    partial_merge: Function,
}

impl Operator {
    pub(crate) fn new(env: &mut Env<'_>, name: &str, object: &JObject<'_>) -> Outcome<Self> {
        Ok(Self {
            name: name.to_owned(),
            merge: Function::new(
                env,
                object,
                jni_str!("merge"),
                jni_sig!("(Lio/windrow/MergeOperator;[B[B[B)[B"),
            )?,
            partial_merge: Function::new(
                env,
                object,
                jni_str!("partialMerge"),
                jni_sig!("(Lio/windrow/MergeOperator;[B[B)[B"),
            )?,
        })
    }
}

/// The operands, each behind its length.
fn listed(operands: Operands<'_>) -> Result<Vec<u8>, MergeError> {
    let mut list = Vec::new();
    for operand in operands {
        packed::push(&mut list, operand).map_err(|error| MergeError::new(error.to_string()))?;
    }
    Ok(list)
}

/// Appends the value that was returned. Returns whether there is one.
fn append(returned: Result<Returned, String>, result: &mut Vec<u8>) -> Result<bool, MergeError> {
    match returned.map_err(MergeError::new)? {
        Returned::Value(value) => {
            result.extend_from_slice(&value);
            Ok(true)
        }
        Returned::Nothing | Returned::Removal => Ok(false),
    }
}

impl MergeOperator for Operator {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(
        &self,
        key: &[u8],
        base: Option<&[u8]>,
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<(), MergeError> {
        let operands = listed(operands)?;
        let returned = self.merge.call(&[
            Argument::Bytes(Some(key)),
            Argument::Bytes(base),
            Argument::Bytes(Some(&operands)),
        ]);
        if append(returned, result)? {
            Ok(())
        } else {
            Err(MergeError::new("the operator has returned null"))
        }
    }

    fn partial_merge(
        &self,
        key: &[u8],
        operands: Operands<'_>,
        result: &mut Vec<u8>,
    ) -> Result<bool, MergeError> {
        let operands = listed(operands)?;
        let arguments = [Argument::Bytes(Some(key)), Argument::Bytes(Some(&operands))];
        append(self.partial_merge.call(&arguments), result)
    }
}
