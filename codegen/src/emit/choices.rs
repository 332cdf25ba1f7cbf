//! Emits `choices.rs`: comparisons, video instructions, cache policies, driver functions.

use super::lowering::modifier;
use super::ptx::ident;
use crate::model::Model;
use crate::model::lowering::Modifier;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// The generated items.
pub fn emit(model: &Model) -> TokenStream {
    let choices = &model.choices;
    let group = model.ptx.groups.iter().find(|g| g.row.group == "compare");
    let comparisons = choices.comparisons.iter().map(|c| {
        let text = ident(group.map_or("", |g| &g.texts[c.text].text));
        let asked = |m: Option<Modifier>| match m.map(|m| modifier(model, m)) {
            Some(m) => quote!(Some(#m)),
            None => quote!(None),
        };
        let (int, unsigned, float) = (asked(c.int), c.unsigned, asked(c.float));
        quote!(Comparison { compare: Compare::#text, int: #int, unsigned: #unsigned, float: #float })
    });
    let op = |op: usize| ident(&model.ptx.operations[op].op);
    let steps = choices.steps.iter().map(|(number, step, lanes)| {
        let (op, step) = (op(*number), format_ident!("{}", format!("{step:?}")));
        quote!((Op::#op, Step::#step, #lanes))
    });
    let policies = choices.policies.iter().map(|(number, bits)| {
        let op = op(*number);
        quote!((Op::#op, #bits))
    });
    let system: Vec<&String> = choices.system.iter().map(|s| &s.0).collect();
    let stopping: Vec<&String> = choices.system.iter().filter(|s| !s.1).map(|s| &s.0).collect();
    let stops = stopping.len();
    let [compared, stepped, kept, provided] =
        [choices.comparisons.len(), choices.steps.len(), choices.policies.len(), system.len()];
    quote! {
        /// Every PTX comparison operator.
        static COMPARISONS: [Comparison; #compared] = [#(#comparisons),*];
        /// Video instructions except `vmad`.
        static STEPS: [(Op, Step, u8); #stepped] = [#(#steps),*];
        /// Bits of the first eviction priority in the upper word of a cache policy.
        static POLICIES: [(Op, u32); #kept] = [#(#policies),*];
        /// Functions that the driver provides, in the order of the table.
        pub static SYSTEM: [&str; #provided] = [#(#system),*];
        /// Those that never return.
        pub static STOPPING: [&str; #stops] = [#(#stopping),*];
    }
}
