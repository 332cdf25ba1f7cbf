//! Emits `legal.rs`: the legalization backends, the families of expansions, the knobs.

use super::{camel, plain_enum};
use crate::model::Model;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// The generated items.
pub fn emit(model: &Model) -> TokenStream {
    let legal = &model.legal;
    let families: Vec<_> = legal.expansions.iter().map(|e| (camel(&e.name), e.name.clone())).collect();
    let family = plain_enum("Family", "A family of pseudo-operations that legalization expands.", &families);
    let slot_names: Vec<(String, String)> =
        legal.backends.first().map_or(Vec::new(), |b| b.slots().iter().map(|s| (s.0.into(), s.0.into())).collect());
    let slot = plain_enum("Slot", "What a phase calls of a backend.", &slot_names);
    let knobs: Vec<_> = legal.knobs.iter().map(|k| (k.name.clone(), k.name.clone())).collect();
    let knob = plain_enum("Knob", "A knob, known by its name.", &knobs);
    let ops = legal.expansions.iter().map(|row| {
        let ops = row.ops.split_whitespace().map(|op| format_ident!("{op}"));
        quote! { &[#(Op::#ops),*] }
    });
    let backends = legal.backends.iter().map(|row| {
        let slots = row.slots().map(|(_, families)| match families {
            None => quote! { None },
            Some(list) => {
                let list = list.split_whitespace().map(|name| format_ident!("{}", camel(name)));
                quote! { Some(&[#(Family::#list),*]) }
            }
        });
        let name = &row.name;
        let hooks = row.operand_hooks.split_whitespace().map(|hook| format_ident!("{}", camel(hook)));
        quote! { LegalizerInfo { name: #name, slots: [#(#slots),*], hooks: &[#(Hook::#hooks),*] } }
    });
    let infos = legal.knobs.iter().map(|k| {
        let (number, default, gates) = (k.number, k.default, &k.gates);
        quote! { KnobInfo { number: #number, default: #default, gates: #gates } }
    });
    let (family_count, backend_count, knob_count) = (families.len(), legal.backends.len(), knobs.len());
    quote! {
        #family
        #slot
        #knob
        /// Operations of each family, by [`Family`].
        pub static FAMILIES: [&[Op]; #family_count] = [#(#ops),*];
        /// The slots and hooks of each backend.
        pub static LEGALIZERS: [LegalizerInfo; #backend_count] = [#(#backends),*];
        /// Facts of each knob, by [`Knob`].
        pub static KNOBS: [KnobInfo; #knob_count] = [#(#infos),*];
    }
}
