// Relative addresses work at /NAME/ as well as at a host of the app's own.
const list = document.querySelector("#list");
const form = document.querySelector("#form");

async function show() {
  const notes = await (await fetch("notes")).json();
  list.replaceChildren(...notes.map((note) => {
    const item = document.createElement("li");
    item.textContent = note.text;
    return item;
  }));
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = new FormData(form).get("text");
  const headers = { "content-type": "application/json" };
  await fetch("notes", { method: "POST", headers, body: JSON.stringify({ text }) });
  form.reset();
  await show();
});

await show();
