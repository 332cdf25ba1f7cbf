//! Emits `targets.rs` (generations, features, targets, the map from names to targets) and
//! `backends.rs` (one struct per implemented SM).

use super::{camel, phf_map, plain_enum};
use crate::model::Model;
use askama::Template;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// The generated items.
pub fn emit(model: &Model) -> TokenStream {
    let t = &model.targets;
    let variants = |names: Vec<&String>| names.iter().map(|n| (camel(n), n.to_string())).collect::<Vec<_>>();
    let generation = plain_enum(
        "Generation",
        "An instruction-set generation: the targets that share one encoder.",
        &variants(t.generations.iter().map(|g| &g.name).collect()),
    );
    let feature = plain_enum(
        "Feature",
        "A named predicate over targets.",
        &variants(t.features.iter().map(|f| &f.name).collect()),
    );
    let infos = generations(model);
    let rows = targets(model);
    let count = rows.len();
    let entries: Vec<_> = t.targets.iter().enumerate().map(|(i, r)| (r.name.clone(), i.to_string())).collect();
    let map = phf_map("TARGET_BY_NAME", "Index into TARGETS by name.", quote!(usize), &entries);
    quote! {
        #generation
        #feature
        #infos
        /// All SM configurations, in the order of their columns.
        pub static TARGETS: [Target; #count] = [#(#rows),*];
        #map
    }
}

fn option(value: Option<u32>) -> TokenStream {
    match value {
        Some(v) => quote!(Some(#v)),
        None => quote!(None),
    }
}

fn generations(model: &Model) -> TokenStream {
    let rows = model.targets.generations.iter().map(|g| {
        let (bits, count, first) = (g.ur_bits, g.ur_count, g.ur_first);
        let (param, stack) = (g.param_base, g.stack_top);
        let (ntid, nctaid, local, base) = (g.ntid, g.nctaid, g.local_window, g.shared_base);
        let (constant, param_window, param_at) = (g.const_window, g.param_window, g.param_window_at);
        let (limit, file, unit, least) = (g.reg_limit, g.reg_file, g.reg_unit, g.abi_min);
        let (end, alias, images) = (g.param_end, option(g.alias_flag), g.image_tables);
        let (desc, window) = (option(g.global_desc), option(g.shared_window));
        quote! { GenerationInfo {
            ur_bits: #bits, ur_count: #count, ur_first: #first, reg_limit: #limit, reg_file: #file, reg_unit: #unit, abi_min: #least, param_base: #param, stack_top: #stack, global_desc: #desc, ntid: #ntid,
            nctaid: #nctaid, shared_window: #window, local_window: #local,
            const_window: #constant, param_window: #param_window, param_window_at: #param_at, param_end: #end, alias_flag: #alias, image_tables: #images, shared_base: #base,
        } }
    });
    let count = model.targets.generations.len();
    quote! {
        /// Facts of each generation, by [`Generation`].
        pub static GENERATIONS: [GenerationInfo; #count] = [#(#rows),*];
    }
}

fn targets(model: &Model) -> Vec<TokenStream> {
    let t = &model.targets;
    t.targets
        .iter()
        .enumerate()
        .map(|(i, row)| {
            let words = bits(&t.has[i]);
            let generation = match &row.generation {
                Some(name) => {
                    let ident = format_ident!("{}", camel(name));
                    quote!(Some(Generation::#ident))
                }
                None => quote!(None),
            };
            let (name, sm, col) = (&row.name, row.sm, row.col);
            let (real, legacy) = (row.kind == "real", row.kind == "legacy");
            let min_ptx = row.min_ptx.as_deref().and_then(version).unwrap_or((0, 0));
            let (major, minor) = min_ptx;
            let runs_as = row.renamed.unwrap_or(row.sm);
            let variant = format_ident!("{}", camel(&row.variant));
            quote! { Target {
                name: #name, sm: #sm, runs_as: #runs_as, column: #col, variant: Variant::#variant, real: #real, legacy: #legacy,
                generation: #generation, min_ptx: (#major, #minor), features: [#(#words),*],
            } }
        })
        .collect()
}

fn version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// A set of features as two 64-bit words.
fn bits(has: &[bool]) -> Vec<u64> {
    let mut words = vec![0u64; 2];
    for (i, _) in has.iter().enumerate().filter(|(_, h)| **h) {
        words[i / 64] |= 1 << (i % 64);
    }
    words
}

struct BackendView {
    ident: String,
    name: String,
    index: usize,
    legalizer: usize,
}

#[derive(Template)]
#[template(path = "backends.rs.askama", escape = "none")]
struct Backends {
    backends: Vec<BackendView>,
}

/// The per-SM backend structs.
pub fn backends(model: &Model) -> String {
    let view = |(index, row): (usize, &crate::source::Row<crate::rows::targets::TargetRow>)| BackendView {
        ident: camel(&row.name),
        name: row.name.clone(),
        index,
        legalizer: legalizer(model, row.col),
    };
    let backends = model.targets.built().map(view).collect();
    // Rendering cannot fail at run time; a broken template does not compile.
    Backends { backends }.render().unwrap_or_default()
}

/// Index of the legalization backend of a column; a law guarantees that there is one.
fn legalizer(model: &Model, column: u32) -> usize {
    model.legal.backends.iter().position(|b| model.targets.columns(&b.on) >> column & 1 != 0).unwrap_or_default()
}
