//! Emits `phases.rs`: the phases in the order in which they run.

use super::plain_enum;
use crate::model::Model;
use proc_macro2::TokenStream;
use quote::quote;

/// The generated items.
pub fn emit(model: &Model) -> TokenStream {
    let mut rows: Vec<_> = model.phases.iter().collect();
    rows.sort_by_key(|r| r.order);
    let variants: Vec<_> = rows.iter().map(|r| (r.name.clone(), r.name.clone())).collect();
    let phase = plain_enum("Phase", "A phase, known by its name; the number is its place in the order.", &variants);
    let count = rows.len();
    let infos = rows.iter().map(|r| {
        let (seed, category, built) = (&r.seed, &r.category, r.state == "built");
        let progress = match r.progress {
            Some(value) => quote! { Some(#value) },
            None => quote! { None },
        };
        quote! { PhaseInfo {
            seed: &[#(#seed),*], progress: #progress, category: #category, built: #built,
        } }
    });
    quote! {
        #phase
        /// Facts of each phase, by [`Phase`].
        pub static PHASES: [PhaseInfo; #count] = [#(#infos),*];
    }
}
