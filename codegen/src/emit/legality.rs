//! `legality.rs`: operations, recipes, rules, and the matrix expanded to its cells in the seed's double words.

use super::{camel, phf_map, plain_enum};
use crate::model::Model;
use crate::model::legality::{COLUMNS, Legality, Verdict};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// A cell whose column is no target.
const NO_RULE: u16 = u16::MAX;

pub fn emit(model: &Model) -> TokenStream {
    let legality = &model.legality;
    let names = |names: Vec<&String>| names.iter().map(|n| (camel(n), n.to_string())).collect::<Vec<_>>();
    let recipes = plain_enum(
        "Recipe",
        "How an operation that the target has no instruction for is made of others.",
        &names(legality.recipes.iter().map(|r| &r.name).collect()),
    );
    let (infos, operations) = (recipe_infos(legality), operations(legality));
    let (rules, matrix) = (rules(model), matrix(legality));
    let ids: Vec<_> = legality.operations.iter().map(|o| (o.op.clone(), o.id.to_string())).collect();
    let map = phf_map("OPERATION_BY_NAME", "Position in OPERATIONS by name.", quote!(u16), &ids);
    quote! { #recipes #infos #operations #rules #matrix #map }
}

fn recipe_infos(legality: &Legality) -> TokenStream {
    let count = legality.recipes.len();
    let rows = legality.recipes.iter().map(|r| {
        let (class, at, what, handler) = (r.class, &r.phase, &r.what, r.kind == "handler");
        let ops = r.ops.split_whitespace();
        quote!(RecipeInfo { class: #class, handler: #handler, phase: #at, what: #what, variants: &[#(#ops),*] })
    });
    quote! {
        /// Recipes, by [`Recipe`].
        pub static RECIPES: [RecipeInfo; #count] = [#(#rows),*];
    }
}

fn operations(legality: &Legality) -> TokenStream {
    let count = legality.operations.len();
    let rows = legality.operations.iter().map(|o| {
        let (name, family, forms, min_ptx, status, src) = (&o.op, &o.family, &o.forms, &o.min_ptx, &o.status, &o.src);
        let built = o.state == "built";
        quote!(Operation { name: #name, family: #family, forms: #forms, min_ptx: #min_ptx, built: #built, status: #status, source: #src })
    });
    quote! {
        /// The operations of the matrix, in the order of their ids.
        pub static OPERATIONS: [Operation; #count] = [#(#rows),*];
    }
}

fn rules(model: &Model) -> TokenStream {
    let legality = &model.legality;
    let count = legality.rules.len();
    let rows = legality.rules.iter().map(|rule| {
        let (on, verdict, status, src) = (&rule.row.on, &rule.row.verdict, &rule.row.status, &rule.row.src);
        let (_, said) = rule.ops.first().map_or((0, None), |o| (o.0, Some(&o.1)));
        let opcodes = match said {
            Some(Verdict::Native(ops)) => ops.iter().map(|o| format_ident!("{}", model.ori.ops[*o].row.op)).collect(),
            _ => Vec::new(),
        };
        let refusal = match said {
            Some(Verdict::Illegal(text)) => quote!(Some(#text)),
            _ => quote!(None),
        };
        quote!(Rule { on: #on, verdict: #verdict, native: &[#(Op::#opcodes),*], refusal: #refusal, status: #status, source: #src })
    });
    quote! {
        /// The rules, in the order of their tables.
        pub static RULES: [Rule; #count] = [#(#rows),*];
    }
}

/// The double word of a verdict; the legend is in `src/tables/legality.rs`.
fn word(legality: &Legality, verdict: &Verdict) -> u32 {
    let number = |recipe: usize, variant: usize| legality.recipes[recipe].class << 8 | variant as u32;
    match verdict {
        Verdict::Native(_) => 0,
        Verdict::Inline(recipe, variant) => number(*recipe, *variant),
        Verdict::Handler(recipe, variant) => 0x0100_0000 | number(*recipe, *variant),
        Verdict::Illegal(_) => 0x0800_0000,
    }
}

fn matrix(legality: &Legality) -> TokenStream {
    let cell = |op: usize, column: usize| {
        let rule = legality.cells[op][column];
        let verdict = rule.and_then(|r| legality.said(r, op));
        (verdict.map_or(0x0800_0000, |v| word(legality, v)), rule.map_or(NO_RULE, |r| r as u16))
    };
    let count = legality.operations.len();
    let rows: Vec<Vec<(u32, u16)>> = (0..count).map(|o| (0..COLUMNS).map(|c| cell(o, c)).collect()).collect();
    let words = rows.iter().map(|row| {
        let words = row.iter().map(|c| c.0);
        quote!([#(#words),*])
    });
    let numbers = rows.iter().map(|row| {
        let numbers = row.iter().map(|c| c.1);
        quote!([#(#numbers),*])
    });
    quote! {
        /// The cells as double words.
        static CELLS: [[u32; #COLUMNS]; #count] = [#(#words),*];
        /// The rule of each cell, by position in RULES.
        static CELL_RULES: [[u16; #COLUMNS]; #count] = [#(#numbers),*];
    }
}
