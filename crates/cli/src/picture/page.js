const filter = document.getElementById("filter");
const items = [...document.querySelectorAll("li")];
filter.oninput = () => {
  let shown = 0;
  for (const item of items) {
    item.hidden = !item.textContent.toLowerCase().includes(filter.value.toLowerCase());
    shown += !item.hidden;
  }
  document.getElementById("count").textContent = `${shown} of ${items.length}`;
};
