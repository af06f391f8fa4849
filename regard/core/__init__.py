"""The mathematics: stateless, torch alone, every definition that the other rooms are held to."""
