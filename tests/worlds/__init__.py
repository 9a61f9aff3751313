"""The contract of ``control.world.World`` as tests, and what stands worlds up for it."""
