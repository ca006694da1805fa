//! One file with all its mutants: each changed function chooses its body by the number of the mutant.
//!
//! A function that a patch changes becomes `{ if crate::mutant(NUMBER) { changed } else { body } }`; a function
//! that it adds is added. Nothing else of a file may differ, since only bodies can be chosen while a process runs.

use syn::{Block, File, ImplItem, Item, ItemMod, TraitItem, parse_quote};

use crate::Fault;

/// Plants in `gated` what differs in `changed` from `original`, as the mutant `number`; returns how many
/// functions were changed.
pub(crate) fn plant(gated: &mut File, original: &File, changed: &File, number: u32) -> Planted {
    plant_items(&mut gated.items, &original.items, &changed.items, number)
}

/// An item that may be a function, or hold functions.
trait Part: Clone + PartialEq {
    /// The body, if it is a function with one.
    fn body(&mut self) -> Option<&mut Block>;

    /// The same without bodies and without what it holds: two items with one head are one item, changed.
    fn head(&self) -> Self;

    /// Plants in what it holds; `None` if it holds no functions.
    fn plant_inside(&mut self, original: &Self, changed: &Self, number: u32) -> Option<Planted>;
}

/// How many functions were changed.
pub(crate) type Planted = Result<usize, Fault>;

/// Plants in each of `gated` what differs in `changed` from `original`.
fn plant_items<T: Part>(gated: &mut Vec<T>, original: &[T], changed: &[T], number: u32) -> Planted {
    let mut planted = 0;
    let mut rest = original.iter().enumerate();
    for item in changed {
        let mut ahead = rest.clone();
        let head = item.head();
        let Some((index, original)) = ahead.find(|(_, original)| original.head() == head) else {
            if item.clone().body().is_none() {
                return Err("the patch changes more than functions".into());
            }
            gated.push(item.clone());
            continue;
        };
        rest = ahead;
        if original == item {
            continue;
        }
        if let Some(outcome) = gated[index].plant_inside(original, item, number) {
            planted += outcome?;
        } else if let (Some(body), Some(changed)) = (gated[index].body(), item.clone().body()) {
            *body = parse_quote!({ if crate::mutant(#number) #changed else #body });
            planted += 1;
        } else {
            return Err("the patch changes more than functions".into());
        }
    }
    Ok(planted)
}

impl Part for Item {
    fn body(&mut self) -> Option<&mut Block> {
        match self {
            Self::Fn(function) => Some(&mut function.block),
            _ => None,
        }
    }

    fn head(&self) -> Self {
        let mut head = self.clone();
        match &mut head {
            Self::Fn(function) => function.block.stmts.clear(),
            Self::Impl(block) => block.items.clear(),
            Self::Trait(block) => block.items.clear(),
            Self::Mod(module) => module.content = None,
            _ => {}
        }
        head
    }

    fn plant_inside(&mut self, original: &Self, changed: &Self, number: u32) -> Option<Planted> {
        match (self, original, changed) {
            (Self::Impl(gated), Self::Impl(original), Self::Impl(changed)) => Some(plant_items(
                &mut gated.items,
                &original.items,
                &changed.items,
                number,
            )),
            (Self::Trait(gated), Self::Trait(original), Self::Trait(changed)) => Some(plant_items(
                &mut gated.items,
                &original.items,
                &changed.items,
                number,
            )),
            (Self::Mod(gated), Self::Mod(original), Self::Mod(changed)) => {
                let inside = |module: &ItemMod| module.content.clone().map(|(_, items)| items);
                let (_, gated) = gated.content.as_mut()?;
                Some(plant_items(
                    gated,
                    &inside(original)?,
                    &inside(changed)?,
                    number,
                ))
            }
            _ => None,
        }
    }
}

impl Part for ImplItem {
    fn body(&mut self) -> Option<&mut Block> {
        match self {
            Self::Fn(function) => Some(&mut function.block),
            _ => None,
        }
    }

    fn head(&self) -> Self {
        let mut head = self.clone();
        if let Some(body) = head.body() {
            body.stmts.clear();
        }
        head
    }

    fn plant_inside(&mut self, _: &Self, _: &Self, _: u32) -> Option<Planted> {
        None
    }
}

impl Part for TraitItem {
    fn body(&mut self) -> Option<&mut Block> {
        match self {
            Self::Fn(function) => function.default.as_mut(),
            _ => None,
        }
    }

    fn head(&self) -> Self {
        let mut head = self.clone();
        if let Some(body) = head.body() {
            body.stmts.clear();
        }
        head
    }

    fn plant_inside(&mut self, _: &Self, _: &Self, _: u32) -> Option<Planted> {
        None
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn a_changed_function_chooses_its_body() {
        let original: File = parse_quote! {
            const LIMIT: u32 = 3;
            impl A { fn f(&self) -> u32 { 1 } fn g() {} }
            fn h() -> bool { true }
        };
        let first: File = parse_quote! {
            const LIMIT: u32 = 3;
            impl A { fn added() {} fn f(&self) -> u32 { 2 } fn g() {} }
            fn h() -> bool { true }
        };
        let second: File = parse_quote! {
            const LIMIT: u32 = 3;
            impl A { fn f(&self) -> u32 { 3 } fn g() {} }
            fn h() -> bool { false }
        };
        let mut gated = original.clone();
        plant(&mut gated, &original, &first, 1).unwrap();
        plant(&mut gated, &original, &second, 2).unwrap();
        let expected: File = parse_quote! {
            const LIMIT: u32 = 3;
            impl A {
                fn f(&self) -> u32 {
                    if crate::mutant(2u32) { 3 } else { if crate::mutant(1u32) { 2 } else { 1 } }
                }
                fn g() {}
                fn added() {}
            }
            fn h() -> bool { if crate::mutant(2u32) { false } else { true } }
        };
        assert_eq!(gated, expected);
    }

    #[test]
    fn what_no_process_can_choose_is_refused() {
        let original: File = parse_quote!(
            const LIMIT: u32 = 3;
            fn f() {}
        );
        let changed: File = parse_quote!(
            const LIMIT: u32 = 4;
            fn f() {}
        );
        assert!(plant(&mut original.clone(), &original, &changed, 1).is_err());
    }
}
