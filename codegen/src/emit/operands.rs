//! Emits `operands.rs`: operand recipes, backend hooks, materializing moves.

use super::{camel, plain_enum};
use crate::model::Model;
use crate::model::operands::{Move, Recipe, Step};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// The generated items.
pub fn emit(model: &Model) -> TokenStream {
    let operands = &model.operands;
    let hooks: Vec<_> = operands.hooks().iter().map(|h| (camel(h), h.to_string())).collect();
    let hooks = plain_enum("Hook", "What a backend says of the operands of some opcodes.", &hooks);
    let recipes = operands.recipes.iter().map(recipe);
    let moves = operands.moves.iter().map(|one| way(model, one));
    let (recipe_count, move_count) = (operands.recipes.len(), operands.moves.len());
    quote! {
        #hooks
        /// The recipes, in table order.
        pub static RECIPES: [RecipeInfo; #recipe_count] = [#(#recipes),*];
        /// The moves, in table order; of several alternatives the first is preferred.
        pub static MOVES: [MoveInfo; #move_count] = [#(#moves),*];
    }
}

fn roles(names: &[String]) -> Vec<TokenStream> {
    let one = |name: &String| {
        let role = format_ident!("{}", camel(name));
        quote!(Role::#role)
    };
    names.iter().map(one).collect()
}

fn recipe(recipe: &Recipe) -> TokenStream {
    let name = &recipe.row.name;
    let category = format_ident!("{}", recipe.row.category);
    let hook = match recipe.hook() {
        None => quote!(None),
        Some(hook) => {
            let hook = format_ident!("{}", camel(hook));
            quote!(Some(Hook::#hook))
        }
    };
    let moves = match recipe.moves().map(roles).as_deref() {
        Some([d, a]) => quote!(Some((#d, #a))),
        _ => quote!(None),
    };
    let steps = recipe.materials().map(step);
    let exchanges = recipe.exchanges().map(|step| {
        let (name, of) = (format_ident!("{}", camel(&step.name)), roles(&step.of));
        quote!((Exchange::#name, &[#(#of),*]))
    });
    quote! { RecipeInfo {
        name: #name, category: Category::#category, hook: #hook, moves: #moves, steps: &[#(#steps),*], exchanges: &[#(#exchanges),*],
    } }
}

fn step(step: &Step) -> TokenStream {
    let (many, optional) = (step.many, step.optional);
    let role = &roles(&step.of)[0];
    let by = format_ident!("{}", camel(&step.name));
    quote! { Step { by: Material::#by, role: #role, many: #many, optional: #optional } }
}

fn way(model: &Model, one: &Move) -> TokenStream {
    let (to, op) = (&one.row.to, format_ident!("{}", model.ori.ops[one.op].row.op));
    let from = format_ident!("{}", camel(&one.row.from));
    let mods = one.mods.iter().map(|(kind, value)| {
        let (kind, value) = (format_ident!("{}", camel(&model.ori.kinds[*kind].name)), *value as u8);
        quote!((Mod::#kind, #value))
    });
    let args = one.args.iter().map(|(role, part)| {
        let role = format_ident!("{}", camel(role));
        let part = match part.as_str() {
            "to" => quote!(Part::To),
            "from" => quote!(Part::From),
            "!from" => quote!(Part::NotFrom),
            "PT" => quote!(Part::True),
            "!PT" => quote!(Part::False),
            "RZ" => quote!(Part::Zero),
            number => {
                let number = number.parse::<u32>().unwrap_or_default();
                quote!(Part::Number(#number))
            }
        };
        quote!((Role::#role, #part))
    });
    quote! { MoveInfo { to: #to, from: Origin::#from, op: Op::#op, mods: &[#(#mods),*], args: &[#(#args),*] } }
}
