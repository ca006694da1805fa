//! Results of the ready operators, and that partial folds change no result.

use std::sync::Arc;

use proptest::prelude::*;

use super::{AddI64, AddU64, Append, Extremum, IdSet, by_name};
use crate::merge_operator::{MergeOperator, Operands};

/// The value after `operands` on `base`.
fn full(
    operator: &dyn MergeOperator,
    base: Option<&[u8]>,
    operands: &[&[u8]],
) -> Result<Vec<u8>, String> {
    let mut value = Vec::new();
    operator
        .full_merge(b"key", base, Operands::new(operands), &mut value)
        .map(|()| value)
        .map_err(|error| error.to_string())
}

fn partial(operator: &dyn MergeOperator, operands: &[&[u8]]) -> Option<Vec<u8>> {
    let mut operand = Vec::new();
    let is_one = operator
        .partial_merge(b"key", Operands::new(operands), &mut operand)
        .unwrap();
    is_one.then_some(operand)
}

#[test]
fn numbers_are_added() {
    let unsigned = |operator: AddU64, base: Option<u64>, operands: &[u64]| {
        let base = base.map(u64::to_le_bytes);
        let operands: Vec<_> = operands.iter().map(|it| it.to_le_bytes()).collect();
        let operands: Vec<&[u8]> = operands.iter().map(<[u8; 8]>::as_slice).collect();
        let sum = full(&operator, base.as_ref().map(<[u8; 8]>::as_slice), &operands).unwrap();
        u64::from_le_bytes(sum.try_into().unwrap())
    };
    assert_eq!(unsigned(AddU64::Wrapping, None, &[1, 2]), 3);
    assert_eq!(unsigned(AddU64::Wrapping, Some(5), &[1, 2]), 8);
    assert_eq!(unsigned(AddU64::Wrapping, Some(u64::MAX), &[3]), 2);
    assert_eq!(unsigned(AddU64::Saturating, Some(u64::MAX), &[3]), u64::MAX);
    let (one, less) = (1_i64.to_le_bytes(), (-1_i64).to_le_bytes());
    let max = i64::MAX.to_le_bytes();
    let signed = |operator: AddI64| full(&operator, Some(&max), &[&one, &less]).unwrap();
    assert_eq!(signed(AddI64::Wrapping), max);
    assert_eq!(signed(AddI64::Saturating), (i64::MAX - 1).to_le_bytes());
    // One operand of 0 would not do the same.
    assert_eq!(partial(&AddI64::Saturating, &[&one, &less]), None);
    assert!(partial(&AddI64::Saturating, &[&one, &one]).is_some());
    // On -5 one operand of the greatest number would not do the same as twice that number.
    assert_eq!(partial(&AddI64::Saturating, &[&max, &max]), None);
    let malformed = [
        full(&AddU64::Wrapping, Some(b"short"), &[&one]),
        full(&AddU64::Wrapping, None, &[&one, b"short"]),
    ];
    for outcome in malformed {
        assert!(outcome.unwrap_err().contains("5 bytes"));
    }
}

#[test]
fn bytes_are_appended_compared_and_united() {
    let append = |separator: &str, base: Option<&[u8]>| {
        full(&Append::new(separator), base, &[b"x", b"", b"y"]).unwrap()
    };
    assert_eq!(append(",", None), b"x,,y");
    assert_eq!(append(",", Some(b"")), b",x,,y");
    assert_eq!(append("", Some(b"base")), b"basexy");
    let operands: [&[u8]; 3] = [b"b", b"a", b"c"];
    assert_eq!(
        full(&Extremum::Least, Some(b"aa"), &operands).unwrap(),
        b"a"
    );
    assert_eq!(full(&Extremum::Greatest, None, &operands).unwrap(), b"c");
    assert_eq!(
        full(&Extremum::Greatest, Some(b"d"), &operands).unwrap(),
        b"d"
    );
    let unite = |base, operands: &[&[u8]]| full(&IdSet::new(2), base, operands);
    assert_eq!(unite(None, &[b"ccaa", b"bb", b"aa"]).unwrap(), b"aabbcc");
    assert_eq!(unite(Some(b"bbdd"), &[b"ccaa", b""]).unwrap(), b"aabbccdd");
    assert!(
        unite(Some(b"bbd"), &[b"cc"])
            .unwrap_err()
            .contains("3 bytes")
    );
}

fn ready() -> Vec<Arc<dyn MergeOperator>> {
    vec![
        Arc::new(AddU64::Wrapping),
        Arc::new(AddU64::Saturating),
        Arc::new(AddI64::Wrapping),
        Arc::new(AddI64::Saturating),
        Arc::new(Extremum::Least),
        Arc::new(Extremum::Greatest),
        Arc::new(Append::new("")),
        Arc::new(Append::new([0, 255, b','])),
        Arc::new(IdSet::new(1)),
        Arc::new(IdSet::new(8)),
        #[cfg(feature = "json")]
        Arc::new(super::JsonMergePatch),
    ]
}

#[test]
fn names_lead_back_to_their_operators() {
    for operator in ready() {
        let found = by_name(operator.name()).unwrap();
        assert_eq!(found.name(), operator.name());
    }
    for unknown in [
        "",
        "windrow.append",
        "windrow.append.0",
        "windrow.append.FF",
        "windrow.append.+1",
        "windrow.id_set.0",
        "windrow.id_set.08",
        "windrow.id_set.x",
        "other",
    ] {
        assert!(by_name(unknown).is_none(), "{unknown}");
    }
}

proptest! {
    /// A fold of some operands to one, wherever it happens, changes no result.
    #[test]
    fn partial_folds_change_no_result(
        choice in 0..10_usize,
        base: Option<i64>,
        numbers in proptest::collection::vec(prop_oneof![any::<i64>(), -3..3_i64], 2..9),
        from: usize,
        count: usize,
    ) {
        let operator = &*ready()[choice];
        let base = base.map(i64::to_le_bytes);
        let base = base.as_ref().map(<[u8; 8]>::as_slice);
        let operands: Vec<_> = numbers.iter().map(|it| it.to_le_bytes()).collect();
        let operands: Vec<&[u8]> = operands.iter().map(<[u8; 8]>::as_slice).collect();
        let from = from % (operands.len() - 1);
        let to = from + 2 + count % (operands.len() - from - 1);
        if let Some(one) = partial(operator, &operands[from..to]) {
            let folded = [&operands[..from], &[&one], &operands[to..]].concat();
            prop_assert_eq!(
                full(operator, base, &folded),
                full(operator, base, &operands)
            );
        }
    }
}

#[cfg(feature = "json")]
mod json {
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::super::JsonMergePatch;
    use super::{full, partial};

    /// The examples of RFC 7396, appendix A.
    #[test]
    fn patches_follow_the_standard() {
        for (document, patch, expected) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (
                r#"{"a":{"b":"c"}}"#,
                r#"{"a":{"b":"d","c":null}}"#,
                r#"{"a":{"b":"d"}}"#,
            ),
            (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
            (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
            (r#"{"a":"foo"}"#, "null", "null"),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"a":1,"e":null}"#),
            ("[1,2]", r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
            ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        ] {
            let base = Some(document.as_bytes());
            let patched = full(&JsonMergePatch, base, &[patch.as_bytes()]).unwrap();
            assert_eq!(
                String::from_utf8(patched).unwrap(),
                expected,
                "{document} {patch}"
            );
        }
        assert!(
            full(&JsonMergePatch, None, &[b"{"])
                .unwrap_err()
                .contains("no JSON")
        );
    }

    fn document() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            (0..3_u64).prop_map(Value::from),
            Just(Value::from("s")),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            proptest::collection::btree_map("[abc]", inner, 0..3)
                .prop_map(|members| Value::Object(Map::from_iter(members)))
        })
    }

    proptest! {
        /// Each fold reads what the one before it has written.
        #[test]
        fn a_fold_keeps_the_numbers_of_other_members(number in any::<f64>()) {
            let document = Value::from(number).to_string();
            let base = format!("{{\"a\":{document}}}");
            let folded = full(&JsonMergePatch, Some(base.as_bytes()), &[b"{}"]).unwrap();
            prop_assert_eq!(String::from_utf8(folded).unwrap(), base);
        }

        #[test]
        fn composed_patches_do_the_same(
            base in document(),
            patches in proptest::collection::vec(document(), 2..5),
        ) {
            let base = base.to_string();
            let texts: Vec<_> = patches.iter().map(Value::to_string).collect();
            let texts: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
            if let Some(one) = partial(&JsonMergePatch, &texts) {
                prop_assert_eq!(
                    full(&JsonMergePatch, Some(base.as_bytes()), &[&one]),
                    full(&JsonMergePatch, Some(base.as_bytes()), &texts)
                );
            }
        }
    }
}
