//! Emits `memory.rs`: memory order, cache control, atomics, special registers.

use super::{camel, constant};
use crate::model::Model;
use crate::model::memory::{instruction, modifier, words};
use crate::rows::memory::{AtomicRow, OrderRow, SpecialHomeRow};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// The generated items.
pub fn emit(model: &Model) -> TokenStream {
    let l = &model.memory;
    let order: Vec<_> = l.order.iter().flat_map(|row| order(model, row)).collect();
    let cache: Vec<_> = l
        .cache
        .iter()
        .map(|row| {
            let (access, text, mods) = (variant("Access", &row.access), &row.text, mods(model, &row.mods));
            quote!(CacheRow { access: #access, text: #text, mods: #mods })
        })
        .collect();
    let atomic: Vec<_> = l.atomic.iter().flat_map(|row| atomic(model, row)).collect();
    let special: Vec<_> = l.special.iter().map(|row| special(model, row)).collect();
    let (no, nc, na, ns) = (order.len(), cache.len(), atomic.len(), special.len());
    quote! {
        /// How accesses are ordered; the first matching row applies.
        pub static ORDER: [OrderRow; #no] = [#(#order),*];
        /// The modifiers of cache operators and hints.
        pub static CACHE: [CacheRow; #nc] = [#(#cache),*];
        /// The implementations of atomic operations.
        pub static ATOMIC: [AtomicRow; #na] = [#(#atomic),*];
        /// The locations of special registers.
        pub static SPECIAL: [SpecialHome; #ns] = [#(#special),*];
    }
}

fn variant(kind: &str, name: &str) -> TokenStream {
    let (kind, name) = (format_ident!("{kind}"), format_ident!("{}", camel(name)));
    quote!(#kind::#name)
}

fn pairs(model: &Model, list: &[(usize, usize)]) -> TokenStream {
    let items = list.iter().map(|(kind, value)| {
        let kind = &model.ori.kinds[*kind];
        let (name, module) = (format_ident!("{}", camel(&kind.name)), format_ident!("r#{}", kind.name));
        let value = format_ident!("{}", constant(&kind.values[*value]));
        quote!((Mod::#name, value::#module::#value))
    });
    quote!(&[#(#items),*])
}

fn mods(model: &Model, text: &str) -> TokenStream {
    let list: Vec<_> = text.split_whitespace().filter_map(|word| modifier(&model.ori, word)).collect();
    pairs(model, &list)
}

fn steps(model: &Model, text: &str) -> TokenStream {
    let items = text.split_whitespace().filter_map(|word| instruction(&model.ori, word)).map(|(op, list)| {
        let (op, mods) = (format_ident!("{}", model.ori.ops[op].row.op), pairs(model, &list));
        quote!(Step { op: Op::#op, mods: #mods })
    });
    quote!(&[#(#items),*])
}

fn order(model: &Model, row: &OrderRow) -> Vec<TokenStream> {
    let (access, semantics) = (variant("Access", &row.access), variant("Semantics", &row.semantics));
    let shared = row.space == "shared";
    let feature = match row.feature.as_str() {
        "" => quote!(None),
        name => {
            let name = variant("Feature", name);
            quote!(Some(#name))
        }
    };
    let (mods, before, after) = (mods(model, &row.mods), steps(model, &row.before), steps(model, &row.after));
    let scope = |text: &str| match text {
        "" => quote!(None),
        text => {
            let scope = variant("Scope", text);
            quote!(Some(#scope))
        }
    };
    let rows = words(&row.scope).into_iter().map(|text| {
        let scope = scope(text);
        quote!(OrderRow {
            access: #access, semantics: #semantics, scope: #scope, shared: #shared, feature: #feature,
            mods: #mods, before: #before, after: #after,
        })
    });
    rows.collect()
}

fn atomic(model: &Model, row: &AtomicRow) -> Vec<TokenStream> {
    let (space, how, vector) = (variant("AtomicSpace", &row.space), variant("AtomicHow", &row.how), row.vector);
    let keeps = row.keeps;
    let size = match modifier(&model.ori, &format!("size={}", row.size)) {
        None => quote!(None),
        Some((_, value)) => {
            let value = value as u8;
            quote!(Some((Mod::Size, #value)))
        }
    };
    let mut out = Vec::new();
    for op in words(&row.op) {
        let op = variant("AtomOp", op);
        for ty in words(&row.types) {
            let ty = variant("ScalarType", ty);
            out.push(quote!(AtomicRow {
                op: #op, ty: #ty, vector: #vector, space: #space, how: #how, size: #size, keeps: #keeps,
            }));
        }
    }
    out
}

fn special(model: &Model, row: &SpecialHomeRow) -> TokenStream {
    let (name, from) = (variant("SpecialRegister", &row.name), variant("SpecialFrom", &row.from));
    let on = crate::model::encoding::generations(&row.on, &model.targets, |_| ());
    let on = on.into_iter().fold(0u8, |mask, g| mask | 1 << g);
    let (sr, at, shift, mask) = (&row.sr, row.at, row.shift, row.mask);
    quote!(SpecialHome {
        register: #name, on: #on, from: #from, sr: #sr, at: #at, shift: #shift, mask: #mask,
    })
}
